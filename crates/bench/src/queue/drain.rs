//! Draining: pop and acknowledge until a filled queue is empty.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Uri;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::args::QueueArgs;
use super::push::fill;
use super::responses::{ack_of, acknowledged};
use crate::connection::Connection;
use crate::failures::Failures;
use crate::figure::{Figure, Unit};
use crate::load::Throughput;
use crate::server::{REQUEST_TIMEOUT, RETRY_PAUSE, Server};

/// A first, short drain tells how many messages fill the time: so many times the number that the
/// connections take at once.
const PILOT_ROUNDS: usize = 2;
const MIN_ROUNDS: usize = 4;
const MAX_MESSAGES: usize = 500_000;
/// A queue that is not empty after so many times `--seconds` is left as it is.
const OVERTIME: u32 = 4;

/// A queue and the consumers that drain it.
#[derive(Debug, Clone)]
pub(super) struct Drain {
    pub(super) queue: String,
    /// The names of the consumer groups; without any, the queue's own mode.
    pub(super) groups: Vec<String>,
    /// For each group.
    pub(super) connections: usize,
    pub(super) batch: usize,
    /// How many messages each group has to find.
    pub(super) messages: usize,
    pub(super) limit: Duration,
}

#[derive(Debug, Default)]
pub(super) struct DrainResult {
    pub(super) acked: usize,
    /// From the first pop to the last acknowledgement that succeeded.
    pub(super) time: Duration,
    /// How long a pop that found messages and its acknowledgement took together.
    pub(super) cycles: Vec<Duration>,
    /// Whether every group has acknowledged all messages.
    pub(super) is_empty: bool,
}

impl DrainResult {
    pub(super) fn per_second(&self) -> f64 {
        self.acked as f64 / self.time.as_secs_f64().max(1e-6)
    }
}

pub(super) async fn measure(
    server: &Server,
    args: &QueueArgs,
    batch: usize,
) -> anyhow::Result<Vec<Figure>> {
    let drain = Drain::new(server.unique_name(&format!("drain-{batch}")), args, batch);
    let drained = drain.pilot_and_run(server, args).await?;
    Ok(figures(&format!("drain, batch {batch}"), drained))
}

pub(super) fn figures(name: &str, drained: DrainResult) -> Vec<Figure> {
    let throughput = Throughput {
        per_second: drained.per_second(),
        times: drained.cycles,
    };
    Figure::rate(name, Unit::MESSAGES_PER_SECOND, "pop and ack", throughput)
}

impl Drain {
    /// By all connections, without groups.
    pub(super) fn new(queue: String, args: &QueueArgs, batch: usize) -> Self {
        Self {
            queue,
            groups: Vec::new(),
            connections: args.connections,
            batch,
            messages: 0,
            limit: args.seconds * OVERTIME,
        }
    }

    /// Drains a short queue to learn the rate, then a queue that takes about `--seconds`.
    pub(super) async fn pilot_and_run(
        &self,
        server: &Server,
        args: &QueueArgs,
    ) -> anyhow::Result<DrainResult> {
        let run = async |phase: &str, messages: usize| {
            let mut drain = self.clone();
            drain.queue = format!("{}-{phase}", self.queue);
            drain.messages = fill(server, args, &drain.queue, messages).await?;
            drain.run(server).await
        };
        let at_once = self.connections * self.batch;
        let pilot = run("pilot", at_once * PILOT_ROUNDS).await?;
        let groups = self.groups.len().max(1);
        let fitting = pilot.per_second() * args.seconds.as_secs_f64() / groups as f64;
        let messages = (fitting as usize).clamp(at_once * MIN_ROUNDS, MAX_MESSAGES);
        run("full", messages).await
    }

    pub(super) async fn run(&self, server: &Server) -> anyhow::Result<DrainResult> {
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
                let consumer = Consumer::new(server, self, group, Arc::clone(&popped));
                tasks.spawn(consumer.run(start, self.messages, start + self.limit));
            }
        }
        let mut all = DrainResult::default();
        for mut one in tasks.join_all().await {
            all.acked += one.acked;
            all.time = all.time.max(one.time);
            all.cycles.append(&mut one.cycles);
        }
        all.is_empty = all.acked >= wanted;
        if !all.is_empty && start.elapsed() < self.limit {
            let missing = wanted - all.acked;
            server.failures.add(
                "drain",
                &format!("{missing} of {wanted} messages were not acknowledged"),
            );
        }
        ensure!(all.acked > 0, "{}: nothing could be drained", server.name);
        Ok(all)
    }
}

/// One connection that drains.
struct Consumer {
    connection: Connection,
    pop: Uri,
    ack: Uri,
    batch: usize,
    group: Option<String>,
    popped: Arc<AtomicUsize>,
    failures: Arc<Failures>,
}

impl Consumer {
    fn new(
        server: &Server,
        drain: &Drain,
        group: Option<&String>,
        popped: Arc<AtomicUsize>,
    ) -> Self {
        let (queue, batch) = (&drain.queue, drain.batch);
        let mut pop = format!("/api/v1/pop/queue/{queue}?batch={batch}&wait=false");
        if let Some(group) = group {
            // Servers differ in whether a new group begins with the messages that are there.
            pop += &format!("&consumerGroup={group}&subscriptionMode=all");
        }
        let ack = match batch {
            1 => "/api/v1/ack",
            _ => "/api/v1/ack/batch",
        };
        Self {
            connection: server.connection(),
            pop: server.path(&pop),
            ack: server.path(ack),
            batch,
            group: group.cloned(),
            popped,
            failures: Arc::clone(&server.failures),
        }
    }

    /// Runs until the group has popped all `messages`. Leases are longer than a run, so no message is
    /// delivered twice.
    async fn run(mut self, start: Instant, messages: usize, deadline: Instant) -> DrainResult {
        let mut drained = DrainResult::default();
        loop {
            let began = Instant::now();
            if self.popped.load(Ordering::Relaxed) >= messages || began >= deadline {
                return drained;
            }
            match self.cycle().await {
                Ok(0) => {}
                Ok(acked) => {
                    let now = Instant::now();
                    drained.acked += acked;
                    drained.time = now - start;
                    drained.cycles.push(now - began);
                }
                Err(error) => {
                    self.failures.add_error("drain", &error);
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// How many messages were acknowledged.
    async fn cycle(&mut self) -> anyhow::Result<usize> {
        let response = self
            .connection
            .get(&self.pop, REQUEST_TIMEOUT)
            .await
            .context("pop")?;
        let found = ack_of(&response, self.batch, self.group.as_deref()).context("pop")?;
        let Some((body, count)) = found else {
            return Ok(0);
        };
        self.popped.fetch_add(count, Ordering::Relaxed);
        let response = self.connection.post(&self.ack, body, REQUEST_TIMEOUT).await;
        let response = response.context("ack")?;
        let acked = acknowledged(&response).context("ack")?;
        if acked != count {
            self.failures.add("ack", &response.describe());
        }
        Ok(acked)
    }
}
