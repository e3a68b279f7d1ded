//! How late a saved fact is at open streams, and what these cost while nothing happens.

mod crowd;
mod rest;

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use super::args::FeedArgs;
use crate::contestant::Contestant;
use crate::figure::{Figure, Unit};
use crate::percentiles::Percentiles;
use crate::units::show_count;
use crowd::Crowd;
use rest::until_at_rest;

/// Between two saves. Drawn at random, so that they do not fall into step with a server that polls.
const REST: std::ops::Range<f64> = 0.01..0.05;
/// However long each of them takes.
const LEAST_SAVES: usize = 5;
/// So many streams show what each takes.
const ENOUGH: usize = 100;
/// Frames that are waited for in all: one for each stream that a save concerns.
const MOST_FRAMES: usize = 500_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Givens {
    /// Each stream has a root of its own: a save concerns one of them.
    Distinct,
    /// All have the same: a save concerns all.
    One,
}

impl fmt::Display for Givens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distinct => "one of them is concerned",
            Self::One => "all of them are concerned",
        })
    }
}

pub(super) fn name(givens: Givens, count: usize) -> String {
    let streams = if count == 1 { "stream" } else { "streams" };
    format!("live, {} {streams}, {givens}", show_count(count))
}

pub(super) fn p99_name(givens: Givens, count: usize) -> String {
    format!("{} p99", name(givens, count))
}

pub(super) async fn measure(
    server: &mut Contestant,
    args: &FeedArgs,
    givens: Givens,
    count: usize,
) -> anyhow::Result<Vec<Figure>> {
    // One stream is the same either way.
    if count == 1 && givens == Givens::One {
        return Ok(Vec::new());
    }
    // What an earlier phase made it keep would hide what these streams take.
    server.start_afresh()?;
    let server = &*server;
    let meter = server.meter().await?;
    until_at_rest(&meter).await?;
    let before = meter.read().await?.memory_bytes;
    let start = Instant::now();
    let crowd = Crowd::open(server, givens, count).await?;
    let opened = start.elapsed();
    until_at_rest(&meter).await?;
    let after = meter.read().await?.memory_bytes;
    let watched = givens == Givens::Distinct && args.idle_streams() == Some(count);
    let idle = match watched {
        true => meter.idle_statements(args.idle).await?,
        false => None,
    };
    let saves = Saves {
        server,
        args,
        givens,
    };
    let found = saves.run(crowd).await?;

    let name = name(givens, count);
    let detail = |what: &str| format!("  {name}, {what}");
    let times = Percentiles::of(found.times).context("no fact came to a stream")?;
    let answers = Percentiles::of(found.answers).context("no fact was saved")?;
    let waits = Percentiles::of(found.waits).context("no fact was saved")?;
    let mut figures = vec![
        Figure::time(p99_name(givens, count), times.p99),
        Figure::time(detail("p50"), times.p50),
        Figure::time(detail("max"), times.max),
        Figure::time(detail("save answered p50"), answers.p50),
        Figure::time(detail("save answered p99"), answers.p99),
        Figure::time(detail("after the save's answer p50"), waits.p50),
        Figure::time(detail("after the save's answer p99"), waits.p99),
        Figure::time(detail("all in SYNC within"), opened),
    ];
    // Of a few, it is mostly what the process had to learn.
    if let Some((before, after)) = before.zip(after).filter(|_| count >= ENOUGH) {
        let each = (after - before) / count as f64;
        figures.push(Figure::new(detail("memory of each"), Unit::Bytes, each));
    }
    figures.extend(idle.map(|rate| {
        let name = detail("statements while idle");
        Figure::new(name, Unit::StatementsPerMinute, rate * 60.0)
    }));
    Ok(figures)
}

struct Saves<'a> {
    server: &'a Contestant,
    args: &'a FeedArgs,
    givens: Givens,
}

#[derive(Default)]
struct Found {
    /// From a save sent to the frame of each stream that it concerns.
    times: Vec<Duration>,
    /// To its own answer.
    answers: Vec<Duration>,
    /// From that answer to the frame of the last stream: what the waiting adds to the saving.
    waits: Vec<Duration>,
}

impl Saves<'_> {
    async fn run(&self, mut crowd: Crowd) -> anyhow::Result<Found> {
        let concerned = match self.givens {
            Givens::Distinct => 1,
            Givens::One => crowd.len(),
        };
        let most = self.args.saves.min(MOST_FRAMES / concerned);
        let most = most.max(LEAST_SAVES);
        let mut line = self.server.line();
        let mut found = Found::default();
        let mut start = Instant::now();
        for number in 0..LEAST_SAVES + most {
            // The first ones open the connection and learn: they are not counted.
            if number == LEAST_SAVES {
                (start, found) = (Instant::now(), Found::default());
            }
            if found.answers.len() >= LEAST_SAVES && start.elapsed() > self.args.live {
                break;
            }
            let rest = Duration::from_secs_f64(rand::random_range(REST));
            tokio::time::sleep(rest).await;
            let root = crowd.root(rand::random_range(0..crowd.len())).clone();
            let sent = Instant::now();
            let saving = async {
                root.save(&mut line, number..number + 1).await?;
                anyhow::Ok(sent.elapsed())
            };
            let (answered, came) = tokio::try_join!(saving, crowd.arrivals(concerned))?;
            // The work that follows, a SYNC for each, is not to be in the way of the next one.
            crowd.until_synced(concerned).await;
            let late = |at: Instant| at.saturating_duration_since(sent);
            let times: Vec<Duration> = came.into_iter().map(late).collect();
            let last = times.iter().max().copied().unwrap_or_default();
            found.waits.push(last.saturating_sub(answered));
            found.answers.push(answered);
            found.times.extend(times);
        }
        Ok(found)
    }
}
