//! Counts the pops that have arrived and are parked.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;
use wakeline_client::Client;

use super::waiters::Waiters;
use crate::failures::Failures;
use crate::meter::Metrics;
use crate::units::show_count;

const POLL: Duration = Duration::from_millis(100);
const STALLED_AFTER: Duration = Duration::from_secs(30);
const COUNTED_WITHIN: Duration = Duration::from_secs(10);

/// How many requests all nodes hold; `None` when one of them does not say.
pub(super) async fn count(nodes: &[Client]) -> Option<u64> {
    let mut total = 0;
    for node in nodes {
        total += match node.waiting().await {
            Ok(waiting) => waiting,
            Err(_) => Metrics::parse(&node.metrics().await.ok()?).sum("wakeline_waiters")? as u64,
        };
    }
    Some(total)
}

/// The count when it no longer changes: pops of an earlier run may still be ending, and this run
/// would count them.
pub(super) async fn count_at_rest(nodes: &[Client]) -> Option<u64> {
    let deadline = Instant::now() + COUNTED_WITHIN;
    let mut last = count(nodes).await?;
    while Instant::now() < deadline {
        tokio::time::sleep(POLL).await;
        let now = count(nodes).await?;
        if now == last {
            break;
        }
        last = now;
    }
    Some(last)
}

/// How many pops of this run are still held some time after all have hung up; 0 as soon as none is.
pub(super) async fn left_behind(nodes: &[Client], before: u64) -> Option<u64> {
    let deadline = Instant::now() + COUNTED_WITHIN;
    loop {
        let left = count(nodes).await?.saturating_sub(before);
        if left == 0 || Instant::now() > deadline {
            return Some(left);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns when all pops are opened, and held where the server says so. `before` is how many it held
/// before this run. Fails when there is no progress for a while.
pub(super) async fn until_all(
    waiters: &Waiters,
    wanted: usize,
    nodes: &[Client],
    before: Option<u64>,
    failures: &Failures,
) -> anyhow::Result<Option<u64>> {
    let mut progress = Progress::default();
    let mut best = 0;
    let mut progressed = Instant::now();
    loop {
        let opened = waiters.opened();
        let held = match before {
            Some(before) => count(nodes).await.map(|now| now.saturating_sub(before)),
            None => None,
        };
        progress.show(opened, held);
        let arrived = match (before, held) {
            (_, Some(held)) => opened.min(held as usize),
            (None, None) => opened,
            // The server counted before this run. Now it is too busy to answer, not done.
            (Some(_), None) => 0,
        };
        if arrived >= wanted {
            eprintln!();
            return Ok(held);
        }
        if arrived > best {
            best = arrived;
            progressed = Instant::now();
        }
        if progressed.elapsed() > STALLED_AFTER {
            eprintln!();
            bail!(stalled(wanted, opened, held, waiters.early(), failures));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// One line on standard error, written over itself, and only when it has changed.
#[derive(Default)]
struct Progress {
    shown: String,
}

impl Progress {
    fn show(&mut self, opened: usize, held: Option<u64>) {
        let mut line = format!("{} opened", show_count(opened));
        if let Some(held) = held {
            line += &format!(", {} held", show_count(held as usize));
        }
        if line != self.shown {
            eprint!("\r{line} ");
            self.shown = line;
        }
    }
}

fn stalled(
    wanted: usize,
    opened: usize,
    held: Option<u64>,
    early: usize,
    failures: &Failures,
) -> String {
    let mut text = format!("of {wanted} waiters, {opened} were opened");
    if let Some(held) = held {
        text += &format!(" and {held} are held");
    }
    text += &format!(", without progress for {} s.", STALLED_AFTER.as_secs());
    let summary = failures.summary();
    if let Some(failed) = summary.describe("requests failed") {
        text += &format!(" {failed}.");
    }
    if early > 0 {
        text +=
            &format!(" {early} pops were answered empty at once: the server does not hold them.");
    }
    text + " Check the server's limit of open files, of waiters, and with `--http 2` of streams \
            per connection (more --connections help)."
}
