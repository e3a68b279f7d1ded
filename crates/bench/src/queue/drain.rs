//! Draining: pop and acknowledge until a filled queue is empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Uri;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answers::{ack_of, acknowledged};
use super::args::QueueArgs;
use super::push::fill;
use crate::contestant::{Contestant, PATIENCE, PAUSE};
use crate::failures::Failures;
use crate::figure::{Figure, Unit};
use crate::line::Line;

/// A first, short drain tells how much fills the time; so many times the messages that the
/// connections take at once.
const PILOT_ROUNDS: usize = 2;
const LEAST_ROUNDS: usize = 4;
const MOST_MESSAGES: usize = 500_000;
/// A queue that is not empty by so many times the time asked for is left as it is.
const OVERTIME: u32 = 4;

/// Who drains what.
#[derive(Debug, Clone)]
pub(super) struct Drain {
    pub(super) queue: String,
    /// Names of groups, each with all its connections; the queue's own mode when empty.
    pub(super) groups: Vec<String>,
    /// For each group.
    pub(super) connections: usize,
    pub(super) batch: usize,
    /// How many messages each group has to find.
    pub(super) messages: usize,
    pub(super) limit: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Drained {
    pub(super) acked: usize,
    /// From the first pop to the last acknowledgement that counted.
    pub(super) time: Duration,
    pub(super) empty_pops: usize,
    /// Of a pop that found something and its acknowledgement together.
    pub(super) cycles: Vec<Duration>,
    pub(super) is_empty: bool,
}

impl Drained {
    pub(super) fn per_second(&self) -> f64 {
        self.acked as f64 / self.time.as_secs_f64().max(1e-6)
    }
}

pub(super) async fn measure(
    contestant: &Contestant,
    args: &QueueArgs,
    batch: usize,
) -> anyhow::Result<Vec<Figure>> {
    let drain = |phase: &str| Drain {
        queue: contestant.named(&format!("drain-{batch}-{phase}")),
        groups: Vec::new(),
        connections: args.connections,
        batch,
        messages: 0,
        limit: args.seconds * OVERTIME,
    };
    let drained = pilot_and_run(contestant, args, drain).await?;
    Ok(figures(&format!("drain, batch {batch}"), drained))
}

/// A pilot to learn the rate, then a queue that takes about as long as was asked for.
pub(super) async fn pilot_and_run(
    contestant: &Contestant,
    args: &QueueArgs,
    drain: impl Fn(&str) -> Drain,
) -> anyhow::Result<Drained> {
    let run = async |phase: &str, messages: usize| {
        let mut drain = drain(phase);
        drain.messages = fill(contestant, args, &drain.queue, messages).await?;
        drain.run(contestant).await
    };
    let shape = drain("shape");
    let at_once = shape.connections * shape.batch;
    let pilot = run("pilot", at_once * PILOT_ROUNDS).await?;
    let groups = shape.groups.len().max(1);
    let fitting = pilot.per_second() * args.seconds.as_secs_f64() / groups as f64;
    let messages = (fitting as usize).clamp(at_once * LEAST_ROUNDS, MOST_MESSAGES);
    run("full", messages).await
}

pub(super) fn figures(name: &str, drained: Drained) -> Vec<Figure> {
    let rate = drained.per_second();
    let mut figures = vec![Figure::new(name, Unit::MessagesPerSecond, rate)];
    figures.extend(Figure::details(
        &format!("{name}, pop and ack"),
        drained.cycles,
    ));
    figures
}

impl Drain {
    pub(super) async fn run(&self, contestant: &Contestant) -> anyhow::Result<Drained> {
        let start = Instant::now();
        let mut tasks = JoinSet::new();
        let groups: Vec<Option<&String>> = match &*self.groups {
            [] => vec![None],
            groups => groups.iter().map(Some).collect(),
        };
        let wanted = self.messages * groups.len();
        for group in groups {
            let popped = Arc::new(AtomicUsize::new(0));
            for _ in 0..self.connections {
                let consumer = Consumer::new(contestant, self, group, Arc::clone(&popped));
                tasks.spawn(consumer.run(start, self.messages, start + self.limit));
            }
        }
        let mut all = Drained::default();
        for mut one in tasks.join_all().await {
            all.acked += one.acked;
            all.time = all.time.max(one.time);
            all.empty_pops += one.empty_pops;
            all.cycles.append(&mut one.cycles);
        }
        all.is_empty = all.acked >= wanted;
        if !all.is_empty && start.elapsed() < self.limit {
            let missing = wanted - all.acked;
            contestant.failures.add(
                "drain",
                &format!("{missing} of {wanted} messages were not acknowledged"),
            );
        }
        ensure!(
            all.acked > 0,
            "{}: nothing could be drained",
            contestant.name
        );
        Ok(all)
    }
}

/// One connection.
struct Consumer {
    line: Line,
    pop: Uri,
    ack: Uri,
    batch: usize,
    group: Option<String>,
    popped: Arc<AtomicUsize>,
    failures: Arc<Failures>,
}

impl Consumer {
    fn new(
        contestant: &Contestant,
        drain: &Drain,
        group: Option<&String>,
        popped: Arc<AtomicUsize>,
    ) -> Self {
        let (queue, batch) = (&drain.queue, drain.batch);
        let mut pop = format!("/api/v1/pop/queue/{queue}?batch={batch}&wait=false");
        if let Some(group) = group {
            // Servers differ in whether a new group begins with what is there.
            pop += &format!("&consumerGroup={group}&subscriptionMode=all");
        }
        let ack = match batch {
            1 => "/api/v1/ack",
            _ => "/api/v1/ack/batch",
        };
        Self {
            line: contestant.line(),
            pop: contestant.path(&pop),
            ack: contestant.path(ack),
            batch,
            group: group.cloned(),
            popped,
            failures: Arc::clone(&contestant.failures),
        }
    }

    /// Until all `messages` have been popped by somebody of the group. What is popped is leased
    /// for longer than a run, so nothing comes again.
    async fn run(mut self, start: Instant, messages: usize, deadline: Instant) -> Drained {
        let mut drained = Drained::default();
        loop {
            let began = Instant::now();
            if self.popped.load(Ordering::Relaxed) >= messages || began >= deadline {
                return drained;
            }
            match self.cycle().await {
                Ok(0) => drained.empty_pops += 1,
                Ok(acked) => {
                    let now = Instant::now();
                    drained.acked += acked;
                    drained.time = now - start;
                    drained.cycles.push(now - began);
                }
                Err(error) => {
                    self.failures.add("drain", &format!("{error:#}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// How many messages were acknowledged.
    async fn cycle(&mut self) -> anyhow::Result<usize> {
        let answer = self.line.get(&self.pop, PATIENCE).await.context("pop")?;
        let found = ack_of(&answer, self.batch, self.group.as_deref()).context("pop")?;
        let Some((body, count)) = found else {
            return Ok(0);
        };
        self.popped.fetch_add(count, Ordering::Relaxed);
        let answer = self
            .line
            .post(&self.ack, body, PATIENCE)
            .await
            .context("ack")?;
        let acked = acknowledged(&answer).context("ack")?;
        if acked != count {
            self.failures.add("ack", &answer.shown());
        }
        Ok(acked)
    }
}
