//! How long a new stream takes to bring the tuples that are there, and how that time grows.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use super::args::FeedArgs;
use super::facts::Root;
use super::stream::FeedStream;
use crate::figure::{Figure, Unit};
use crate::load;
use crate::server::{REQUEST_TIMEOUT, Server};
use crate::units::show_count;

/// Facts in each save. Small: for larger graphs some servers take far more than in proportion.
const GRAPH: usize = 100;
const CONNECTIONS: usize = 8;

pub(super) fn name(tuples: usize) -> String {
    format!("backfill of {} tuples", show_count(tuples))
}

pub(super) async fn measure(server: &Server, args: &FeedArgs) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut found = Vec::new();
    for &tuples in &args.tuples {
        let root = Root::new(server, &format!("backfill-{tuples}"));
        let filled = fill(server, &root, tuples).await?;
        eprintln!("  {tuples} tuples saved in {filled:.1?}");
        let feed = root.feed(&mut server.connection()).await?;
        let backfill = Backfill::run(server, &feed, tuples, args.patience).await?;
        let name = name(tuples);
        let detail = |what: &str| format!("  {name}, {what}");
        if let Some(time) = backfill.last {
            let rate = tuples as f64 / time.as_secs_f64();
            figures.push(Figure::new(&name, Unit::TUPLES_PER_SECOND, rate));
            figures.push(Figure::time(detail("to the last tuple"), time));
            found.push((tuples, time));
        } else {
            eprintln!("  {} of {tuples} tuples came", backfill.received);
        }
        match backfill.sync {
            Some(time) => figures.push(Figure::time(detail("to SYNC"), time)),
            None => eprintln!("  no SYNC came"),
        }
    }
    if let [(fewest, short), .., (most, long)] = &found[..] {
        let grown = long.div_duration_f64(*short) / (*most as f64 / *fewest as f64);
        figures.push(Figure::new(growth(*fewest, *most), Unit::TIMES, grown));
    }
    Ok(figures)
}

/// The name of the figure that is 1 when the time grows linearly.
fn growth(fewest: usize, most: usize) -> String {
    let (fewest, most) = (show_count(fewest), show_count(most));
    format!("backfill, a tuple of {most} to one of {fewest}")
}

async fn fill(server: &Server, root: &Root, tuples: usize) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let graphs = tuples.div_ceil(GRAPH);
    load::for_each(server, CONNECTIONS, graphs, async |connection, number| {
        let first = number * GRAPH;
        let items = first..(first + GRAPH).min(tuples);
        root.save(connection, items).await.context("filling")
    })
    .await?;
    Ok(start.elapsed())
}

struct Backfill {
    received: usize,
    /// From the request to the last tuple, and to the SYNC after it, if they came.
    last: Option<Duration>,
    sync: Option<Duration>,
}

impl Backfill {
    async fn run(
        server: &Server,
        feed: &str,
        tuples: usize,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let start = Instant::now();
        let request = FeedStream::request(server, feed);
        let mut stream =
            FeedStream::of(server.connection().stream(request, REQUEST_TIMEOUT).await?);
        let mut seen = HashSet::with_capacity(tuples);
        let mut backfill = Self {
            received: 0,
            last: None,
            sync: None,
        };
        while backfill.sync.is_none() {
            // After the last tuple, a SYNC that does not follow soon does not come.
            let deadline = match backfill.last {
                Some(last) => start + last + REQUEST_TIMEOUT,
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
        backfill.received = seen.len();
        Ok(backfill)
    }
}
