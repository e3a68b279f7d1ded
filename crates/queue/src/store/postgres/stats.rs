//! The statistics that nodes write.

use std::{fmt::Write as _, sync::LazyLock};

use tokio_postgres::types::{ToSql, Type};
use wakeline_bus::Write;
use wakeline_store::Load;

use super::PostgresStore;
use crate::{
    counters::{CounterRow, HeldPops, NodeStats, columns},
    store::{COUNTERS_KEPT_SECONDS, GAUGES_KEPT_SECONDS, StatsStore, wakes},
    topic,
};

/// Rows are written in one order by every node, so that nodes cannot deadlock.
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
             DELETE FROM wakeline.queue_counters t
             WHERE t.minute < clock_timestamp() - $1 * interval '1 second')
         INSERT INTO wakeline.queue_counters AS t (minute, queue, partitions, max_lag_us{names})
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

static SET_NODE_STATS: LazyLock<String> = LazyLock::new(|| {
    let mut names = String::new();
    let mut numbers = String::new();
    let mut replaced = String::new();
    for (at, (name, _)) in NodeStats::default().numbers().enumerate() {
        let _ = write!(names, ", {name}");
        let _ = write!(numbers, ", ${}", at + 5);
        let _ = match name {
            "messages" => write!(replaced, ", {name} = n.{name} + excluded.{name}"),
            "max_late_us" => write!(replaced, ", {name} = greatest(n.{name}, excluded.{name})"),
            _ => write!(replaced, ", {name} = excluded.{name}"),
        };
    }
    format!(
        "WITH old AS (
             DELETE FROM wakeline.queue_node_stats n
             WHERE n.minute < clock_timestamp() - $1 * interval '1 second')
         INSERT INTO wakeline.queue_node_stats AS n (minute, hostname, port{names})
         VALUES (to_timestamp(0) + $2 * interval '1 microsecond', $3, $4{numbers})
         ON CONFLICT (minute, hostname, port) DO UPDATE SET hostname = excluded.hostname{replaced}"
    )
});

impl StatsStore for PostgresStore {
    fn add_counts(&self, counts: Vec<CounterRow>) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            let column = |get: fn(&CounterRow) -> i64| counts.iter().map(get).collect::<Vec<i64>>();
            let minutes = column(|count| count.minute_us);
            let lags = column(|count| count.max_lag_us);
            let partitions: Vec<_> = counts.iter().map(|count| count.partition).collect();
            let queues: Vec<Option<&str>> = counts
                .iter()
                .map(|count| count.partition.is_none().then_some(&*count.queue))
                .collect();
            let numbers: Vec<Vec<i64>> = columns().map(|number| column(number.get)).collect();
            let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
                (&COUNTERS_KEPT_SECONDS, Type::INT8),
                (&minutes, Type::INT8_ARRAY),
                (&queues, Type::TEXT_ARRAY),
                (&partitions, Type::INT8_ARRAY),
                (&lags, Type::INT8_ARRAY),
            ];
            for numbers in &numbers {
                parameters.push((numbers, Type::INT8_ARRAY));
            }
            let written = postgres.query("counters", &ADD_COUNTS, &parameters);
            written.await.map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn set_held_pops(
        &self,
        (hostname, port): (String, i64),
        held_pops: Vec<HeldPops>,
    ) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            let column =
                |get: fn(&HeldPops) -> i64| held_pops.iter().map(get).collect::<Vec<i64>>();
            let queues: Vec<&str> = held_pops
                .iter()
                .map(|held_pops| &*held_pops.queue)
                .collect();
            postgres
                .query(
                    "held_pops",
                    "WITH old AS (
                         DELETE FROM wakeline.queue_held_pops p
                         WHERE p.minute < clock_timestamp() - $1 * interval '1 second')
                     INSERT INTO wakeline.queue_held_pops (minute, queue, hostname, port, held, samples)
                     SELECT to_timestamp(0) + u.minute_us * interval '1 microsecond', u.queue, $2,
                         $3, u.held, u.samples
                     FROM unnest($4, $5, $6, $7) AS u(minute_us, queue, held, samples)
                     ORDER BY 1, 2
                     ON CONFLICT (minute, queue, hostname, port)
                     DO UPDATE SET held = excluded.held, samples = excluded.samples",
                    &[
                        (&GAUGES_KEPT_SECONDS, Type::INT8),
                        (&hostname, Type::TEXT),
                        (&port, Type::INT8),
                        (&column(|held_pops| held_pops.minute_us), Type::INT8_ARRAY),
                        (&queues, Type::TEXT_ARRAY),
                        (&column(|held_pops| held_pops.held), Type::INT8_ARRAY),
                        (&column(|held_pops| held_pops.samples), Type::INT8_ARRAY),
                    ],
                )
                .await
                .map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn set_node_stats(&self, stats: NodeStats) -> Write<()> {
        let postgres = self.postgres.clone();
        let run = async move {
            let numbers: Vec<Option<i64>> = stats.numbers().map(|(_, number)| number).collect();
            let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
                (&GAUGES_KEPT_SECONDS, Type::INT8),
                (&stats.minute_us, Type::INT8),
                (&stats.hostname, Type::TEXT),
                (&stats.port, Type::INT8),
            ];
            for number in &numbers {
                parameters.push((number, Type::INT8));
            }
            let written = postgres.query("node_stats", &SET_NODE_STATS, &parameters);
            written.await.map(drop)
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn load(&self) -> Load {
        self.postgres.load()
    }
}
