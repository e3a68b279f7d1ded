//! What a server costs: its memory, its processor time, its statements.

mod postgres;
mod process;
mod prometheus;

use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;
use wakeline_client::Client;

pub(crate) use postgres::Database;
pub(crate) use prometheus::Metrics;

/// Reads the cost of all nodes of a run together. Each figure is there or not by itself: a
/// server of another make may expose none of them.
pub(crate) struct Meter {
    nodes: Vec<Client>,
    pids: Vec<u32>,
    database: Option<Database>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reading {
    pub(crate) memory_bytes: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) statements: Option<Statements>,
}

/// A count of statements and where it was counted. Counts of different sources do not compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statements {
    pub(crate) count: f64,
    pub(crate) source: &'static str,
}

impl Meter {
    pub(crate) fn new(nodes: Vec<Client>, pids: Vec<u32>, database: Option<Database>) -> Self {
        Self {
            nodes,
            pids,
            database,
        }
    }

    /// How long what has been done takes to be counted, if longer than the doing.
    pub(crate) fn settle_time(&self) -> Option<Duration> {
        self.database.as_ref()?.settle_time()
    }

    pub(crate) async fn read(&self) -> anyhow::Result<Reading> {
        let metrics = self.metrics().await;
        let mut reading = Reading {
            memory_bytes: metrics
                .as_ref()
                .and_then(|m| m.sum("process_resident_memory_bytes")),
            cpu_seconds: metrics
                .as_ref()
                .and_then(|m| m.sum("process_cpu_seconds_total")),
            statements: metrics
                .as_ref()
                .and_then(|m| m.sum("wakeline_statements_total"))
                .map(|count| Statements {
                    count,
                    source: "wakeline_statements_total",
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

    /// Statements per second over `time`; `None` where they are not counted.
    pub(crate) async fn idle_statements(&self, time: Duration) -> anyhow::Result<Option<f64>> {
        if let Some(settle) = self.settle_time() {
            tokio::time::sleep(settle).await;
        }
        let from = self.read().await?;
        let start = Instant::now();
        tokio::time::sleep(time).await;
        let to = self.read().await?;
        let time = start.elapsed().as_secs_f64();
        let counts = from.statements.zip(to.statements);
        Ok(counts.map(|(from, to)| (to.count - from.count) / time))
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
