//! How long a new stream takes to bring what is there, and how that grows.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::FeedArgs;
use super::facts::Root;
use super::stream::Stream;
use crate::contestant::{Contestant, PATIENCE};
use crate::figure::{Figure, Unit};
use crate::units::show_count;

/// Small graphs: some servers take far more than in proportion for larger ones.
const GRAPH: usize = 100;
const CONNECTIONS: usize = 8;

pub(super) fn name(tuples: usize) -> String {
    format!("backfill of {} tuples", show_count(tuples))
}

pub(super) async fn measure(server: &Contestant, args: &FeedArgs) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut found = Vec::new();
    for &tuples in &args.tuples {
        let root = Root::new(server, &format!("backfill-{tuples}"));
        let filled = fill(server, &root, tuples).await?;
        eprintln!("  {tuples} tuples saved in {filled:.1?}");
        let feed = root.feed(&mut server.line()).await?;
        let backfill = Backfill::run(server, &feed, tuples, args.patience).await?;
        let name = name(tuples);
        let detail = |what: &str| format!("  {name}, {what}");
        if let Some(time) = backfill.last {
            let rate = tuples as f64 / time.as_secs_f64();
            figures.push(Figure::new(&name, Unit::TuplesPerSecond, rate));
            figures.push(Figure::time(detail("to the last tuple"), time));
            found.push((tuples, time));
        } else {
            eprintln!("  {} of {tuples} tuples came", backfill.came);
        }
        match backfill.sync {
            Some(time) => figures.push(Figure::time(detail("to SYNC"), time)),
            None => eprintln!("  no SYNC came"),
        }
    }
    if let [(fewest, short), .., (most, long)] = &found[..] {
        let grown = long.div_duration_f64(*short) / (*most as f64 / *fewest as f64);
        figures.push(Figure::new(growth(*fewest, *most), Unit::Times, grown));
    }
    Ok(figures)
}

/// One is linear.
fn growth(fewest: usize, most: usize) -> String {
    let (fewest, most) = (show_count(fewest), show_count(most));
    format!("backfill, a tuple of {most} to one of {fewest}")
}

async fn fill(server: &Contestant, root: &Root, tuples: usize) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let taken = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (mut line, root, taken) = (server.line(), root.clone(), Arc::clone(&taken));
        tasks.spawn(async move {
            loop {
                let first = taken.fetch_add(GRAPH, Ordering::Relaxed);
                if first >= tuples {
                    return anyhow::Ok(());
                }
                let items = first..(first + GRAPH).min(tuples);
                root.save(&mut line, items).await.context("filling")?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}

struct Backfill {
    came: usize,
    /// From the request to the last tuple, and to the SYNC after it, if they came.
    last: Option<Duration>,
    sync: Option<Duration>,
}

impl Backfill {
    async fn run(
        server: &Contestant,
        feed: &str,
        tuples: usize,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let ask = Stream::request(server, feed);
        let mut stream = Stream::of(server.line().stream(ask, PATIENCE).await?);
        let mut seen = HashSet::with_capacity(tuples);
        let mut backfill = Self {
            came: 0,
            last: None,
            sync: None,
        };
        while backfill.sync.is_none() {
            // Once all is there, a SYNC that does not follow soon does not come.
            let deadline = match backfill.last {
                Some(last) => start + last + PATIENCE,
                None => start + patience,
            };
            let Ok(frame) = tokio::time::timeout_at(deadline, stream.frame()).await else {
                break;
            };
            let frame = frame?;
            if frame.hashes.is_empty() {
                anyhow::ensure!(seen.len() >= tuples, "SYNC after {} tuples", seen.len());
                backfill.sync = Some(frame.at - start);
            }
            seen.extend(frame.hashes);
            if seen.len() >= tuples && backfill.last.is_none() {
                backfill.last = Some(frame.at - start);
            }
        }
        backfill.came = seen.len();
        Ok(backfill)
    }
}
