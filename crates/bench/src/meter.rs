//! What a server costs: its memory, its processor time, its statements.

mod postgres;
mod process;
mod prometheus;

use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;
use wakeline_client::Client;

pub(crate) use postgres::{COUNTED_WITHIN, DatabaseCounters, DatabaseUsage};
pub(crate) use prometheus::Metrics;

const STATEMENTS: &str = "wakeline_statements_total";

/// Reads the cost of all nodes of a run together. Each number is there or not by itself: another
/// server than Wakeline may expose none of them.
pub(crate) struct Meter {
    nodes: Vec<Client>,
    pids: Vec<u32>,
    database: Option<DatabaseCounters>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) statements: Option<StatementCount>,
}

/// What a caller knows of the work that it gave to the server.
pub(crate) enum Work {
    Unfinished,
    /// The processor time of the server has to show it.
    Unknown,
    Finished,
}

/// When a server counts as having nothing to do.
pub(crate) struct RestCriteria {
    pub(crate) check_interval: Duration,
    /// It uses less than this share of a core between two checks.
    pub(crate) cpu_share: f64,
    /// So many checks in a row find it so.
    pub(crate) quiet_checks: usize,
    /// Where its processor time cannot be read, it counts as at rest after this.
    pub(crate) unmeasured: Duration,
    pub(crate) timeout: Duration,
}

/// A count of statements and where it was counted. Counts of different sources do not compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StatementCount {
    pub(crate) count: f64,
    pub(crate) source: &'static str,
}

impl Meter {
    pub(crate) fn new(
        nodes: Vec<Client>,
        pids: Vec<u32>,
        database: Option<DatabaseCounters>,
    ) -> Self {
        Self {
            nodes,
            pids,
            database,
        }
    }

    pub(crate) async fn read(&self) -> anyhow::Result<Reading> {
        let metrics = self.metrics().await;
        let sum = |name| metrics.as_ref().and_then(|metrics| metrics.sum(name));
        let mut reading = Reading {
            memory_bytes: sum("process_resident_memory_bytes"),
            cpu_seconds: sum("process_cpu_seconds_total"),
            statements: sum(STATEMENTS).map(|count| StatementCount {
                count,
                source: STATEMENTS,
            }),
        };
        if !self.pids.is_empty() {
            let (mut memory, mut cpu) = (0.0, 0.0);
            for &pid in &self.pids {
                let usage =
                    process::usage(pid).with_context(|| format!("reading /proc of pid {pid}"))?;
                memory += usage.memory_bytes;
                cpu += usage.cpu_seconds;
            }
            reading.memory_bytes = Some(memory);
            reading.cpu_seconds = Some(cpu);
        }
        if let Some(database) = &self.database {
            reading.statements = Some(database.statements().await?);
        }
        Ok(reading)
    }

    /// The readings before and after `time`, and how long it really was.
    pub(crate) async fn watch(
        &self,
        time: Duration,
    ) -> anyhow::Result<(Reading, Reading, Duration)> {
        if let Some(lag) = self.database.as_ref().and_then(DatabaseCounters::lag) {
            eprintln!("waiting until PostgreSQL has all its counters");
            tokio::time::sleep(lag).await;
        }
        let before = self.read().await?;
        let start = Instant::now();
        tokio::time::sleep(time).await;
        Ok((before, self.read().await?, start.elapsed()))
    }

    /// Statements per second over `time`; `None` where they are not counted.
    pub(crate) async fn idle_statements(&self, time: Duration) -> anyhow::Result<Option<f64>> {
        let (before, after, time) = self.watch(time).await?;
        let counts = before.statements.zip(after.statements);
        Ok(counts.map(|(before, after)| (after.count - before.count) / time.as_secs_f64()))
    }

    /// Returns when the server has done its work, as the caller knows or as its processor time
    /// shows, and after `rest.timeout` in any case.
    pub(crate) async fn until_at_rest(
        &self,
        rest: &RestCriteria,
        work: impl AsyncFn() -> Work,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut quiet_checks = 0;
        let (mut last, mut checked) = (self.read().await?.cpu_seconds, Instant::now());
        while start.elapsed() < rest.timeout && quiet_checks < rest.quiet_checks {
            tokio::time::sleep(rest.check_interval).await;
            let now = self.read().await?.cpu_seconds;
            let share = last
                .zip(now)
                .map(|(last, now)| (now - last) / checked.elapsed().as_secs_f64());
            (last, checked) = (now, Instant::now());
            let is_quiet = share.map_or(start.elapsed() > rest.unmeasured, |share| {
                share < rest.cpu_share
            });
            quiet_checks = match work().await {
                Work::Finished => return Ok(()),
                Work::Unknown if is_quiet => quiet_checks + 1,
                Work::Unknown | Work::Unfinished => 0,
            };
        }
        Ok(())
    }

    /// Of all nodes together; `None` when one has no metrics in this format.
    async fn metrics(&self) -> Option<Metrics> {
        let mut all = Metrics::default();
        for node in &self.nodes {
            all.extend(Metrics::parse(&node.metrics().await.ok()?));
        }
        Some(all)
    }
}
