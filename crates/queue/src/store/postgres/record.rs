//! What nodes write of themselves.

use std::{fmt::Write as _, sync::LazyLock};

use tokio_postgres::types::{ToSql, Type};
use wakeline_bus::Write;
use wakeline_store::Load;

use super::PostgresStore;
use crate::{
    store::{
        Record,
        browse::{parked, tallies, vitals},
        wakes,
    },
    tally::{Count, Parked, Vitals, columns},
    topic,
};

/// In one order for every node, so that they cannot deadlock.
static ADD_COUNTS: LazyLock<String> = LazyLock::new(|| {
    let mut names = String::new();
    let mut arrays = String::new();
    let mut sums = String::new();
    let mut added = String::new();
    for (at, column) in columns().enumerate() {
        let name = column.name;
        let _ = write!(names, ", {name}");
        let _ = write!(arrays, ", ${}", at + 6);
        let _ = write!(sums, ", sum(u.{name})::bigint");
        let _ = write!(added, ", {name} = t.{name} + excluded.{name}");
    }
    format!(
        "WITH old AS (
             DELETE FROM wakeline.queue_tally t
             WHERE t.minute < clock_timestamp() - $1 * interval '1 second')
         INSERT INTO wakeline.queue_tally AS t (minute, queue, partitions, max_lag_us{names})
         SELECT to_timestamp(0) + u.minute_us * interval '1 microsecond', n.name,
             max(q.partitions), max(u.max_lag_us){sums}
         FROM unnest($2, $3, $4, $5{arrays}) AS u(minute_us, queue, partition, max_lag_us{names})
         CROSS JOIN LATERAL (SELECT coalesce(u.queue, (
             SELECT q.name FROM wakeline.queue_partition p
             JOIN wakeline.queue q ON q.id = p.queue_id WHERE p.id = u.partition)) AS name) n
         LEFT JOIN wakeline.queue q ON q.name = n.name
         WHERE n.name IS NOT NULL
         GROUP BY 1, 2 ORDER BY 1, 2
         ON CONFLICT (minute, queue) DO UPDATE SET
             partitions = coalesce(excluded.partitions, t.partitions),
             max_lag_us = greatest(t.max_lag_us, excluded.max_lag_us){added}"
    )
});

impl Record for PostgresStore {
    fn add_counts(&self, counts: Vec<Count>) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            let column = |get: fn(&Count) -> i64| counts.iter().map(get).collect::<Vec<i64>>();
            let minutes = column(|count| count.minute_us);
            let lags = column(|count| count.max_lag_us);
            let partitions: Vec<_> = counts.iter().map(|count| count.partition).collect();
            let queues: Vec<Option<&str>> = counts
                .iter()
                .map(|count| count.partition.is_none().then_some(&*count.queue))
                .collect();
            let numbers: Vec<Vec<i64>> = columns().map(|number| column(number.get)).collect();
            let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
                (&tallies::KEPT_SECONDS, Type::INT8),
                (&minutes, Type::INT8_ARRAY),
                (&queues, Type::TEXT_ARRAY),
                (&partitions, Type::INT8_ARRAY),
                (&lags, Type::INT8_ARRAY),
            ];
            for numbers in &numbers {
                parameters.push((numbers, Type::INT8_ARRAY));
            }
            let written = postgres.query("tallies", &ADD_COUNTS, &parameters);
            written.await.map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn set_parked(&self, (hostname, port): (String, i64), parked: Vec<Parked>) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            let column = |get: fn(&Parked) -> i64| parked.iter().map(get).collect::<Vec<i64>>();
            let queues: Vec<&str> = parked.iter().map(|parked| &*parked.queue).collect();
            postgres
                .query(
                    "parked",
                    "WITH old AS (
                         DELETE FROM wakeline.queue_parked p
                         WHERE p.minute < clock_timestamp() - $1 * interval '1 second')
                     INSERT INTO wakeline.queue_parked (minute, queue, hostname, port, held, samples)
                     SELECT to_timestamp(0) + u.minute_us * interval '1 microsecond', u.queue, $2,
                         $3, u.held, u.samples
                     FROM unnest($4, $5, $6, $7) AS u(minute_us, queue, held, samples)
                     ORDER BY 1, 2
                     ON CONFLICT (minute, queue, hostname, port)
                     DO UPDATE SET held = excluded.held, samples = excluded.samples",
                    &[
                        (&parked::KEPT_SECONDS, Type::INT8),
                        (&hostname, Type::TEXT),
                        (&port, Type::INT8),
                        (&column(|parked| parked.minute_us), Type::INT8_ARRAY),
                        (&queues, Type::TEXT_ARRAY),
                        (&column(|parked| parked.held), Type::INT8_ARRAY),
                        (&column(|parked| parked.samples), Type::INT8_ARRAY),
                    ],
                )
                .await
                .map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn set_vitals(&self, vitals: Vitals) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            postgres
                .query(
                    "vitals",
                    "WITH old AS (
                         DELETE FROM wakeline.queue_node n
                         WHERE n.minute < clock_timestamp() - $1 * interval '1 second')
                     INSERT INTO wakeline.queue_node AS n (minute, hostname, port, cpu_user,
                         cpu_system, resident_bytes, virtual_bytes, connections,
                         busy_connections, held, late_us, max_late_us, messages)
                     VALUES (to_timestamp(0) + $2 * interval '1 microsecond', $3, $4, $5, $6, $7,
                         $8, $9, $10, $11, $12, $13, $14)
                     ON CONFLICT (minute, hostname, port) DO UPDATE SET
                         cpu_user = excluded.cpu_user, cpu_system = excluded.cpu_system,
                         resident_bytes = excluded.resident_bytes,
                         virtual_bytes = excluded.virtual_bytes,
                         connections = excluded.connections,
                         busy_connections = excluded.busy_connections, held = excluded.held,
                         late_us = excluded.late_us,
                         max_late_us = greatest(n.max_late_us, excluded.max_late_us),
                         messages = n.messages + excluded.messages",
                    &[
                        (&vitals::KEPT_SECONDS, Type::INT8),
                        (&vitals.minute_us, Type::INT8),
                        (&vitals.hostname, Type::TEXT),
                        (&vitals.port, Type::INT8),
                        (&vitals.cpu_user, Type::INT8),
                        (&vitals.cpu_system, Type::INT8),
                        (&vitals.resident_bytes, Type::INT8),
                        (&vitals.virtual_bytes, Type::INT8),
                        (&vitals.connections, Type::INT8),
                        (&vitals.busy_connections, Type::INT8),
                        (&vitals.held, Type::INT8),
                        (&vitals.late_us, Type::INT8),
                        (&vitals.max_late_us, Type::INT8),
                        (&vitals.messages, Type::INT8),
                    ],
                )
                .await
                .map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn load(&self) -> Load {
        self.postgres.load()
    }
}
