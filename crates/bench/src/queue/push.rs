//! Pushing: as fast as the connections can, or a known number of messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answers::queued;
use super::args::QueueArgs;
use super::bodies::{Bodies, Template, templates};
use crate::contestant::{Contestant, PATIENCE, PAUSE};
use crate::figure::{Figure, Unit};

const PUSH: &str = "/api/v1/push";
const FILL_CONNECTIONS: usize = 8;
pub(super) const FILL_BATCH: usize = 100;

/// Not counted: connections are opened, partitions are made.
fn warm_up(args: &QueueArgs) -> Duration {
    (args.seconds / 4).min(Duration::from_secs(1))
}

#[derive(Debug, Default)]
struct Pushed {
    messages: usize,
    latencies: Vec<Duration>,
}

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
    batch: usize,
) -> anyhow::Result<Vec<Figure>> {
    let queue = contestant.named(&format!("push-{batch}"));
    let templates = templates(args, &queue, batch);
    let from = Instant::now() + warm_up(args);
    let until = from + args.seconds;
    let mut tasks = JoinSet::new();
    for connection in 0..args.connections {
        let bodies = Bodies::new(Arc::clone(&templates), connection);
        tasks.spawn(push_until(Pusher::new(contestant, bodies), from, until));
    }
    let mut all = Pushed::default();
    for mut pushed in tasks.join_all().await {
        all.messages += pushed.messages;
        all.latencies.append(&mut pushed.latencies);
    }
    let name = format!("push, batch {batch}");
    let rate = all.messages as f64 / args.seconds.as_secs_f64();
    let mut figures = vec![Figure::new(&name, Unit::MessagesPerSecond, rate)];
    figures.extend(Figure::details(&format!("{name}, answer"), all.latencies));
    Ok(figures)
}

async fn push_until(mut pusher: Pusher, from: Instant, until: Instant) -> Pushed {
    let mut pushed = Pushed::default();
    loop {
        let sent = Instant::now();
        if sent >= until {
            return pushed;
        }
        let stored = pusher.push().await;
        let answered = Instant::now();
        if stored == 0 {
            tokio::time::sleep(PAUSE).await;
        } else if answered >= from && answered <= until {
            pushed.messages += stored;
            pushed.latencies.push(answered - sent);
        }
    }
}

/// Puts at least `wanted` messages into a queue, evenly over its partitions; how many there are.
pub(super) async fn fill(
    contestant: &Contestant,
    args: &QueueArgs,
    queue: &str,
    wanted: usize,
) -> anyhow::Result<usize> {
    let per_partition = wanted.div_ceil(args.partitions);
    let batch = per_partition.min(FILL_BATCH);
    let pushes = per_partition.div_ceil(batch) * args.partitions;
    fill_with(contestant, templates(args, queue, batch), pushes).await?;
    Ok(pushes * batch)
}

/// Pushes each template in turn, `pushes` times in all. Fails when one is not stored: what comes
/// after it would measure another queue than the one asked for.
pub(super) async fn fill_with(
    contestant: &Contestant,
    templates: Arc<[Template]>,
    pushes: usize,
) -> anyhow::Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for connection in 0..FILL_CONNECTIONS {
        let mut bodies = Bodies::new(Arc::clone(&templates), connection);
        let (mut line, path) = (contestant.line(), contestant.path(PUSH));
        let (templates, next) = (Arc::clone(&templates), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pushes {
                    return anyhow::Ok(());
                }
                let place = number % templates.len();
                let answer = line.post(&path, bodies.of(place), PATIENCE).await?;
                let stored = queued(&answer)?;
                let expected = templates[place].items();
                ensure!(stored == expected, "not all was stored: {}", answer.shown());
            }
        });
    }
    while let Some(filled) = tasks.join_next().await {
        filled??;
    }
    Ok(())
}

/// One connection.
pub(super) struct Pusher {
    line: crate::line::Line,
    path: http::Uri,
    bodies: Bodies,
    failures: Arc<crate::failures::Failures>,
}

impl Pusher {
    pub(super) fn new(contestant: &Contestant, bodies: Bodies) -> Self {
        Self {
            line: contestant.line(),
            path: contestant.path(PUSH),
            bodies,
            failures: Arc::clone(&contestant.failures),
        }
    }

    /// How many messages are stored now.
    pub(super) async fn push(&mut self) -> usize {
        let (expected, body) = self.bodies.next();
        let stored = match self.line.post(&self.path, body, PATIENCE).await {
            Ok(answer) => queued(&answer).and_then(|stored| {
                ensure!(stored == expected, "not all was stored: {}", answer.shown());
                Ok(stored)
            }),
            Err(lost) => Err(lost.into()),
        };
        stored.unwrap_or_else(|error| {
            self.failures.add("push", &error);
            0
        })
    }
}
