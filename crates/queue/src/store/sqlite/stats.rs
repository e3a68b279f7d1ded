//! The statistics that the node writes.

use std::{fmt::Write as _, sync::LazyLock};

use rusqlite::{Connection, Result, ToSql, params};
use wakeline_bus::Write;
use wakeline_store::Load;

use super::SqliteStore;
use crate::{
    counters::{CounterRow, HeldPops, NodeStats, columns},
    store::{COUNTERS_KEPT_SECONDS, GAUGES_KEPT_SECONDS, StatsStore, wakes},
};

static ADD_COUNT: LazyLock<String> = LazyLock::new(|| {
    let mut names = String::new();
    let mut numbers = String::new();
    let mut added = String::new();
    for (at, column) in columns().enumerate() {
        let name = column.name;
        let _ = write!(names, ", {name}");
        let _ = write!(numbers, ", ?{}", at + 5);
        let _ = write!(added, ", {name} = {name} + excluded.{name}");
    }
    format!(
        "INSERT INTO queue_counters (minute, queue, partitions, max_lag_us{names})
         SELECT ?1, n.name, (SELECT q.partitions FROM queue q WHERE q.name = n.name), ?4{numbers}
         FROM (SELECT coalesce(?2, (
             SELECT q.name FROM queue_partition p JOIN queue q ON q.id = p.queue_id
             WHERE p.id = ?3)) AS name) n
         WHERE n.name IS NOT NULL
         ON CONFLICT DO UPDATE SET partitions = coalesce(excluded.partitions, partitions),
             max_lag_us = max(max_lag_us, excluded.max_lag_us){added}"
    )
});

static SET_NODE_STATS: LazyLock<String> = LazyLock::new(|| {
    let mut names = String::new();
    let mut numbers = String::new();
    let mut replaced = String::new();
    for (at, (name, _)) in NodeStats::default().numbers().enumerate() {
        let _ = write!(names, ", {name}");
        let _ = write!(numbers, ", ?{}", at + 4);
        let _ = match name {
            "messages" => write!(replaced, ", {name} = {name} + excluded.{name}"),
            "max_late_us" => write!(replaced, ", {name} = max({name}, excluded.{name})"),
            _ => write!(replaced, ", {name} = excluded.{name}"),
        };
    }
    format!(
        "INSERT INTO queue_node_stats (minute, hostname, port{names}) VALUES (?1, ?2, ?3{numbers})
         ON CONFLICT DO UPDATE SET hostname = excluded.hostname{replaced}"
    )
});

/// Deletes the rows that are older than they are kept for.
fn delete_old(connection: &Connection, statement: &str, kept_seconds: i64, now: i64) -> Result<()> {
    let oldest = now.saturating_sub(kept_seconds.saturating_mul(1_000_000));
    connection
        .prepare_cached(statement)?
        .execute([oldest])
        .map(drop)
}

fn add(connection: &Connection, count: &CounterRow) -> Result<()> {
    let queue = count.partition.is_none().then_some(&count.queue);
    let numbers: Vec<i64> = columns().map(|column| (column.get)(count)).collect();
    let mut parameters: Vec<&dyn ToSql> = vec![
        &count.minute_us,
        &queue,
        &count.partition,
        &count.max_lag_us,
    ];
    parameters.extend(numbers.iter().map(|number| number as &dyn ToSql));
    connection
        .prepare_cached(&ADD_COUNT)?
        .execute(&*parameters)
        .map(drop)
}

impl StatsStore for SqliteStore {
    fn add_counts(&self, counts: Vec<CounterRow>) -> Write<()> {
        self.write(
            "counters",
            move |connection, now| {
                let old = "DELETE FROM queue_counters WHERE minute < ?1";
                delete_old(connection, old, COUNTERS_KEPT_SECONDS, now)?;
                for count in &counts {
                    add(connection, count)?;
                }
                Ok(())
            },
            wakes::none,
        )
    }

    fn set_held_pops(
        &self,
        (hostname, port): (String, i64),
        held_pops: Vec<HeldPops>,
    ) -> Write<()> {
        self.write(
            "held_pops",
            move |connection, now| {
                let old = "DELETE FROM queue_held_pops WHERE minute < ?1";
                delete_old(connection, old, GAUGES_KEPT_SECONDS, now)?;
                let mut statement = connection.prepare_cached(
                    "INSERT INTO queue_held_pops (minute, queue, hostname, port, held, samples)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET held = excluded.held, samples = excluded.samples",
                )?;
                for held_pops in &held_pops {
                    statement.execute(params![
                        held_pops.minute_us,
                        held_pops.queue,
                        hostname,
                        port,
                        held_pops.held,
                        held_pops.samples
                    ])?;
                }
                Ok(())
            },
            wakes::none,
        )
    }

    fn set_node_stats(&self, stats: NodeStats) -> Write<()> {
        self.write(
            "node_stats",
            move |connection, now| {
                let old = "DELETE FROM queue_node_stats WHERE minute < ?1";
                delete_old(connection, old, GAUGES_KEPT_SECONDS, now)?;
                let numbers: Vec<Option<i64>> = stats.numbers().map(|(_, number)| number).collect();
                let mut parameters: Vec<&dyn ToSql> =
                    vec![&stats.minute_us, &stats.hostname, &stats.port];
                parameters.extend(numbers.iter().map(|number| number as &dyn ToSql));
                connection
                    .prepare_cached(&SET_NODE_STATS)?
                    .execute(&*parameters)
                    .map(drop)
            },
            wakes::none,
        )
    }

    fn load(&self) -> Load {
        self.sqlite.load()
    }
}
