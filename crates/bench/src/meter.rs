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
    pub(crate) statements: Option<f64>,
}

/// What a server costs while it has nothing to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IdleUsage {
    pub(crate) statements_per_second: Option<f64>,
    pub(crate) cpu_percent_of_a_core: Option<f64>,
    /// At the end.
    pub(crate) memory_bytes: Option<f64>,
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
    /// A server at rest uses less than this share of a core between two checks.
    pub(crate) cpu_share: f64,
    /// So many checks in a row find it so.
    pub(crate) quiet_checks: usize,
    /// Where its processor time cannot be read, it counts as at rest after this.
    pub(crate) unmeasured: Duration,
    pub(crate) timeout: Duration,
}

impl IdleUsage {
    pub(crate) fn between(from: &Reading, to: &Reading, time: Duration) -> Self {
        let per_second = |counted: fn(&Reading) -> Option<f64>| {
            let used = (counted(to)? - counted(from)?).max(0.0);
            Some(used / time.as_secs_f64())
        };
        Self {
            statements_per_second: per_second(|reading| reading.statements),
            cpu_percent_of_a_core: per_second(|reading| reading.cpu_seconds)
                .map(|cores| 100.0 * cores),
            memory_bytes: to.memory_bytes,
        }
    }
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
            statements: sum("wakeline_statements_total"),
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

    /// Over `time`, in which the caller gives the server nothing to do.
    pub(crate) async fn idle_usage(&self, time: Duration) -> anyhow::Result<IdleUsage> {
        if let Some(lag) = self.database.as_ref().and_then(DatabaseCounters::lag) {
            eprintln!("this PostgreSQL counts transactions only: waiting until it has counted all");
            tokio::time::sleep(lag).await;
        }
        let before = self.read().await?;
        let start = Instant::now();
        tokio::time::sleep(time).await;
        let after = self.read().await?;
        Ok(IdleUsage::between(&before, &after, start.elapsed()))
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
