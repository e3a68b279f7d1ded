//! How late a saved fact is at open streams, and what these cost while nothing happens.

mod open_streams;

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use super::args::FeedArgs;
use crate::figure::{Figure, Unit};
use crate::load::random_pause;
use crate::meter::{RestCriteria, Work};
use crate::percentiles::Percentiles;
use crate::server::Server;
use crate::units::show_count;
use open_streams::OpenStreams;

/// Milliseconds between two saves.
const PAUSE: std::ops::Range<u64> = 10..50;
/// When the server has done the work of the phase before.
const AT_REST: RestCriteria = RestCriteria {
    check_interval: Duration::from_millis(250),
    cpu_share: 0.05,
    quiet_checks: 3,
    unmeasured: Duration::from_secs(1),
    timeout: Duration::from_secs(20),
};
/// However long each of them takes.
const MIN_SAVES: usize = 5;
/// With fewer streams, the memory of each is mostly what the process had to learn.
const MIN_FOR_MEMORY: usize = 100;
/// How many frames are waited for in all: one for each stream that a save concerns.
const MAX_FRAMES: usize = 500_000;

/// Whether the streams have different roots, which decides how many of them a save concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamRoots {
    /// Each stream has a root of its own: a save concerns one of them.
    Distinct,
    /// All streams have the same root: a save concerns all of them.
    Shared,
}

impl fmt::Display for StreamRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distinct => "one of them is concerned",
            Self::Shared => "all of them are concerned",
        })
    }
}

pub(super) fn name(sharing: StreamRoots, count: usize) -> String {
    let streams = if count == 1 { "stream" } else { "streams" };
    format!("live, {} {streams}, {sharing}", show_count(count))
}

pub(super) fn p99_name(sharing: StreamRoots, count: usize) -> String {
    format!("{} p99", name(sharing, count))
}

pub(super) async fn measure(
    server: &mut Server,
    args: &FeedArgs,
    sharing: StreamRoots,
    count: usize,
) -> anyhow::Result<Vec<Figure>> {
    // One stream is the same either way.
    if count == 1 && sharing == StreamRoots::Shared {
        return Ok(Vec::new());
    }
    // Memory that the process kept from an earlier phase would hide what these streams take.
    server.restart()?;
    let server = &*server;
    let meter = server.meter().await?;
    meter
        .until_at_rest(&AT_REST, async || Work::Unknown)
        .await?;
    let before = meter.read().await?.memory_bytes;
    let start = Instant::now();
    let streams = OpenStreams::open(server, sharing, count).await?;
    let opened = start.elapsed();
    meter
        .until_at_rest(&AT_REST, async || Work::Unknown)
        .await?;
    let after = meter.read().await?.memory_bytes;
    let watched = sharing == StreamRoots::Distinct && args.idle_streams() == Some(count);
    let idle = match watched {
        true => meter.idle_usage(args.idle).await?.statements_per_second,
        false => None,
    };
    let saves = LiveSaves {
        server,
        args,
        sharing,
    };
    let found = saves.run(streams).await?;

    let name = name(sharing, count);
    let detail = |what: &str| format!("  {name}, {what}");
    let times = Percentiles::of(found.times).context("no fact came to a stream")?;
    let answers = Percentiles::of(found.answers).context("no fact was saved")?;
    let waits = Percentiles::of(found.waits).context("no fact was saved")?;
    let mut figures = vec![
        Figure::time(p99_name(sharing, count), times.p99),
        Figure::time(detail("p50"), times.p50),
        Figure::time(detail("max"), times.max),
        Figure::time(detail("save answered p50"), answers.p50),
        Figure::time(detail("save answered p99"), answers.p99),
        Figure::time(detail("after the save's answer p50"), waits.p50),
        Figure::time(detail("after the save's answer p99"), waits.p99),
        Figure::time(detail("all in SYNC within"), opened),
    ];
    if let Some((before, after)) = before.zip(after).filter(|_| count >= MIN_FOR_MEMORY) {
        let each = (after - before) / count as f64;
        figures.push(Figure::new(detail("memory of each"), Unit::BYTES, each));
    }
    figures.extend(idle.map(|rate| {
        let name = detail("statements while idle");
        Figure::new(name, Unit::STATEMENTS_PER_MINUTE, rate * 60.0)
    }));
    Ok(figures)
}

struct LiveSaves<'a> {
    server: &'a Server,
    args: &'a FeedArgs,
    sharing: StreamRoots,
}

#[derive(Default)]
struct LiveTimes {
    /// From a save sent to the frame of each stream that it concerns.
    times: Vec<Duration>,
    /// From a save sent to its own answer.
    answers: Vec<Duration>,
    /// From that answer to the frame of the last stream: what the streams add to the save.
    waits: Vec<Duration>,
}

impl LiveSaves<'_> {
    async fn run(&self, mut streams: OpenStreams) -> anyhow::Result<LiveTimes> {
        let concerned = match self.sharing {
            StreamRoots::Distinct => 1,
            StreamRoots::Shared => streams.len(),
        };
        let most = self.args.saves.min(MAX_FRAMES / concerned);
        let most = most.max(MIN_SAVES);
        let mut connection = self.server.connection();
        let mut found = LiveTimes::default();
        let mut start = Instant::now();
        for number in 0..MIN_SAVES + most {
            // The first saves open the connection and fill caches: they are not counted.
            if number == MIN_SAVES {
                (start, found) = (Instant::now(), LiveTimes::default());
            }
            if found.answers.len() >= MIN_SAVES && start.elapsed() > self.args.live {
                break;
            }
            random_pause(PAUSE).await;
            let root = streams.root(rand::random_range(0..streams.len())).clone();
            let sent = Instant::now();
            let saving = async {
                root.save(&mut connection, number..number + 1).await?;
                anyhow::Ok(sent.elapsed())
            };
            let (answered, came) = tokio::try_join!(saving, streams.arrivals(concerned))?;
            // The SYNCs that follow must not be in the way of the next save.
            streams.until_synced(concerned).await;
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
