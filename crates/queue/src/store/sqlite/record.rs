//! What the node writes of itself.

use std::{fmt::Write as _, sync::LazyLock};

use rusqlite::{Connection, Result, ToSql, params};
use wakeline_bus::Write;
use wakeline_store::Load;

use super::SqliteStore;
use crate::{
    store::{
        Record,
        browse::{parked, tallies, vitals},
        wakes,
    },
    tally::{Count, Parked, Vitals, columns},
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
        "INSERT INTO queue_tally (minute, queue, partitions, max_lag_us{names})
         SELECT ?1, n.name, (SELECT q.partitions FROM queue q WHERE q.name = n.name), ?4{numbers}
         FROM (SELECT coalesce(?2, (
             SELECT q.name FROM queue_partition p JOIN queue q ON q.id = p.queue_id
             WHERE p.id = ?3)) AS name) n
         WHERE n.name IS NOT NULL
         ON CONFLICT DO UPDATE SET partitions = coalesce(excluded.partitions, partitions),
             max_lag_us = max(max_lag_us, excluded.max_lag_us){added}"
    )
});

/// Forgets what is too old.
fn forget(connection: &Connection, statement: &str, kept_seconds: i64, now: i64) -> Result<()> {
    let oldest = now.saturating_sub(kept_seconds.saturating_mul(1_000_000));
    connection
        .prepare_cached(statement)?
        .execute([oldest])
        .map(drop)
}

fn add(connection: &Connection, count: &Count) -> Result<()> {
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

impl Record for SqliteStore {
    fn add_counts(&self, counts: Vec<Count>) -> Write<()> {
        self.write(
            "tallies",
            move |connection, now| {
                let old = "DELETE FROM queue_tally WHERE minute < ?1";
                forget(connection, old, tallies::KEPT_SECONDS, now)?;
                for count in &counts {
                    add(connection, count)?;
                }
                Ok(())
            },
            wakes::none,
        )
    }

    fn set_parked(&self, (hostname, port): (String, i64), parked: Vec<Parked>) -> Write<()> {
        self.write(
            "parked",
            move |connection, now| {
                let old = "DELETE FROM queue_parked WHERE minute < ?1";
                forget(connection, old, parked::KEPT_SECONDS, now)?;
                let mut statement = connection.prepare_cached(
                    "INSERT INTO queue_parked (minute, queue, hostname, port, held, samples)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT DO UPDATE SET held = excluded.held, samples = excluded.samples",
                )?;
                for parked in &parked {
                    statement.execute(params![
                        parked.minute_us,
                        parked.queue,
                        hostname,
                        port,
                        parked.held,
                        parked.samples
                    ])?;
                }
                Ok(())
            },
            wakes::none,
        )
    }

    fn set_vitals(&self, vitals: Vitals) -> Write<()> {
        self.write(
            "vitals",
            move |connection, now| {
                let old = "DELETE FROM queue_node WHERE minute < ?1";
                forget(connection, old, vitals::KEPT_SECONDS, now)?;
                connection
                    .prepare_cached(
                        "INSERT INTO queue_node (minute, hostname, port, cpu_user, cpu_system,
                         resident_bytes, virtual_bytes, connections, busy_connections, held,
                         late_us, max_late_us, messages)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
                     ON CONFLICT DO UPDATE SET cpu_user = excluded.cpu_user,
                         cpu_system = excluded.cpu_system,
                         resident_bytes = excluded.resident_bytes,
                         virtual_bytes = excluded.virtual_bytes,
                         connections = excluded.connections,
                         busy_connections = excluded.busy_connections, held = excluded.held,
                         late_us = excluded.late_us,
                         max_late_us = max(max_late_us, excluded.max_late_us),
                         messages = messages + excluded.messages",
                    )?
                    .execute(params![
                        vitals.minute_us,
                        vitals.hostname,
                        vitals.port,
                        vitals.cpu_user,
                        vitals.cpu_system,
                        vitals.resident_bytes,
                        vitals.virtual_bytes,
                        vitals.connections,
                        vitals.busy_connections,
                        vitals.held,
                        vitals.late_us,
                        vitals.max_late_us,
                        vitals.messages
                    ])
                    .map(drop)
            },
            wakes::none,
        )
    }

    fn load(&self) -> Load {
        self.sqlite.load()
    }
}
