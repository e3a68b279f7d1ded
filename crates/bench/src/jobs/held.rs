//! Reads that wait for a provider, many at once, and warm reads beside them; then their results.

mod reads;
mod rest;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::JobsArgs;
use super::host::Host;
use super::provider::Provider;
use super::warm::WarmReads;
use crate::contestant::{Contestant, PATIENCE};
use crate::figure::{Figure, Unit};
use crate::meter::Reading;
pub(super) use reads::HeldReads;
pub(super) use rest::until_at_rest;

/// Of the half minute that a read is held: the rest is for the warm reads and the uploads.
const TAKEN_IN_WITHIN: Duration = Duration::from_secs(8);
/// So many reads that are not held tell how many can be taken in.
const PILOT: usize = 200;
const CONNECTIONS: usize = 16;
const BYTES: usize = 200;

#[derive(Debug, Clone, Copy)]
pub(super) enum Keys {
    Distinct,
    Identical,
}

impl Keys {
    pub(super) fn of(self, read: usize) -> String {
        match self {
            Self::Distinct => format!("held-{read}"),
            Self::Identical => "held".to_owned(),
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Distinct => "distinct keys",
            Self::Identical => "one key",
        })
    }
}

pub(super) async fn measure(
    host: &mut Host,
    args: &JobsArgs,
    keys: Keys,
) -> anyhow::Result<Vec<Figure>> {
    host.start_afresh().await?;
    let server = &host.server;
    let phase = match keys {
        Keys::Distinct => "held-distinct",
        Keys::Identical => "held-identical",
    };
    let provider = Provider::register(server, phase).await?;
    let warm = WarmReads::put(server, &provider, BYTES, CONNECTIONS).await?;
    let alone = warm.run(server, args.seconds, 1).await;
    let fitting = taken_in_per_second(server, &provider).await? * TAKEN_IN_WITHIN.as_secs_f64();
    let count = (fitting as usize).clamp(1, args.held);

    let meter = server.meter().await?;
    let before = meter.read().await?;
    let start = Instant::now();
    let held = HeldReads::open(server, &provider, keys, count);
    until_at_rest(server, &meter, &held, count).await?;
    let open_time = start.elapsed();
    let after = meter.read().await?;
    let beside = warm.run(server, args.seconds, 1).await;
    let answered = held.answer(server, &provider).await;

    let name = format!("held reads, {keys}");
    let detail = |what: &str| format!("  {name}, {what}");
    let mut figures = vec![Figure::new(&name, Unit::Reads, count as f64)];
    figures.push(Figure::time(detail("taken in within"), open_time));
    figures.extend(
        memory(&before, &after, count)
            .map(|bytes| Figure::new(memory_name(keys), Unit::Bytes, bytes)),
    );
    for (what, read) in [("warm reads before", alone), ("warm reads beside", beside)] {
        figures.push(Figure::new(
            detail(what),
            Unit::ReadsPerSecond,
            read.per_second,
        ));
    }
    figures.push(Figure::new(
        detail("answered when the results come"),
        Unit::ReadsPerSecond,
        answered.times.len() as f64 / answered.time.as_secs_f64().max(1e-6),
    ));
    figures.extend(Figure::times(
        &format!("held reads, {keys}, upload sent to answer"),
        answered.times,
    ));
    provider.leave(server).await?;
    Ok(figures)
}

pub(super) fn memory_name(keys: Keys) -> String {
    format!("held reads, {keys}, memory of each")
}

fn memory(before: &Reading, after: &Reading, count: usize) -> Option<f64> {
    let (before, after) = before.memory_bytes.zip(after.memory_bytes)?;
    Some((after - before) / count as f64)
}

/// By reads of new keys that are dispatched and given up at once.
async fn taken_in_per_second(server: &Contestant, provider: &Provider) -> anyhow::Result<f64> {
    let start = Instant::now();
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let mut line = server.line();
        let next = Arc::clone(&next);
        let asks: Vec<_> = (0..PILOT)
            .map(|read| provider.read(server, &format!("pilot-{read}")))
            .collect();
        tasks.spawn(async move {
            while let Some(ask) = asks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ask = ask.clone().with("prefer", "wait=0");
                let answer = line.send(ask, PATIENCE).await?;
                // Nothing is there yet: 504, or 404 where the server is set so.
                anyhow::ensure!(
                    matches!(answer.status.as_u16(), 404 | 504),
                    "{}",
                    answer.shown()
                );
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(PILOT as f64 / start.elapsed().as_secs_f64())
}
