//! The reads on PostgreSQL.

use std::sync::Arc;

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::{ToSql, Type};
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    segment::MAX_MESSAGES,
    store::read::{PositionRange, ReadStore, Row, SegmentSpan, Value},
};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The statement in this database's words.
fn worded(statement: &str) -> String {
    let statement = statement.replace("{now}", NOW);
    let mut worded = String::with_capacity(statement.len());
    let mut rest = &*statement;
    while let Some((before, behind)) = rest.split_once('{') {
        let (word, behind) = behind.split_once('}').expect("a bracket is closed");
        worded.push_str(before);
        worded.push_str(&match word.split_once(' ') {
            Some(("at", us)) => format!("(to_timestamp(0) + {us} * interval '1 microsecond')"),
            Some(("us", time)) => format!("(extract(epoch FROM {time}) * 1000000)::bigint"),
            _ => unreachable!("no word of statements: {word}"),
        });
        rest = behind;
    }
    worded.push_str(rest);
    worded
}

fn typed(value: &Value) -> (&(dyn ToSql + Sync), Type) {
    match value {
        Value::Number(number) => (number, Type::INT8),
        Value::Text(text) => (text, Type::TEXT),
        Value::Id(id) => (id, Type::UUID),
    }
}

fn value(row: &tokio_postgres::Row, column: usize) -> Value {
    match *row.columns()[column].type_() {
        Type::INT4 => Value::Number(row.get::<_, Option<i32>>(column).map(i64::from)),
        Type::BOOL => Value::Number(row.get::<_, Option<bool>>(column).map(i64::from)),
        Type::TEXT => Value::Text(row.get(column)),
        Type::UUID => Value::Id(row.get(column)),
        _ => Value::Number(row.get(column)),
    }
}

impl ReadStore for PostgresStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        async move {
            let parameters: Vec<_> = parameters.iter().map(typed).collect();
            let rows = self
                .postgres
                .query(kind, &worded(statement), &parameters)
                .await?;
            let Some(first) = rows.first() else {
                return Ok(Vec::new());
            };
            let names = first
                .columns()
                .iter()
                .map(|column| column.name().to_owned());
            let columns: Arc<[String]> = names.collect();
            let row = |row: &tokio_postgres::Row| Row {
                columns: columns.clone(),
                values: (0..row.len()).map(|column| value(row, column)).collect(),
            };
            Ok(rows.iter().map(row).collect())
        }
        .boxed()
    }

    fn segment_spans(
        &self,
        ranges: Vec<PositionRange>,
        count: i64,
    ) -> BoxFuture<'_, Result<Vec<SegmentSpan>, Error>> {
        async move {
            let partitions: Vec<i64> = ranges.iter().map(|range| range.partition).collect();
            let from: Vec<i64> = ranges.iter().map(|range| range.from).collect();
            let to: Vec<i64> = ranges.iter().map(|range| range.to).collect();
            // A segment that ends behind the range can only start so far before its end.
            let longest = MAX_MESSAGES as i64;
            let rows = self
                .postgres
                .query(
                    "browse",
                    "SELECT u.id, s.first, s.last,
                         (extract(epoch FROM s.created_at) * 1000000)::bigint AS created_us
                     FROM unnest($1, $2, $3) AS u(id, low, high)
                     CROSS JOIN LATERAL (
                         SELECT s.first, s.last, s.created_at FROM wakeline.queue_segment s
                         WHERE s.partition_id = u.id AND s.last >= u.low
                             AND s.last < u.high + $4 AND s.first < u.high
                         ORDER BY s.last DESC LIMIT $5) s
                     ORDER BY s.created_at DESC, u.id DESC, s.last DESC LIMIT $5",
                    &[
                        (&partitions, Type::INT8_ARRAY),
                        (&from, Type::INT8_ARRAY),
                        (&to, Type::INT8_ARRAY),
                        (&longest, Type::INT8),
                        (&count, Type::INT8),
                    ],
                )
                .await?;
            Ok(rows
                .iter()
                .map(|row| SegmentSpan {
                    partition: row.get("id"),
                    first: row.get("first"),
                    last: row.get("last"),
                    created_us: row.get("created_us"),
                })
                .collect())
        }
        .boxed()
    }

    fn positions_at(&self, times: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        async move {
            let (partitions, times): (Vec<i64>, Vec<i64>) = times.into_iter().unzip();
            let rows = self
                .postgres
                .query(
                    "browse",
                    "SELECT wakeline.queue_first_position_since(u.id, u.at_us) AS position
                     FROM unnest($1, $2) WITH ORDINALITY AS u(id, at_us, item) ORDER BY u.item",
                    &[(&partitions, Type::INT8_ARRAY), (&times, Type::INT8_ARRAY)],
                )
                .await?;
            Ok(rows
                .iter()
                .map(|row| row.get::<_, Option<i64>>("position").unwrap_or_default())
                .collect())
        }
        .boxed()
    }

    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>> {
        async move {
            let rows = self.postgres.query("health", HEALTH, &[]).await?;
            let text: String = rows[0].get("health");
            // The database itself has made it.
            Ok(serde_json::from_str(&text).unwrap_or_default())
        }
        .boxed()
    }
}

/// Of Wakeline's own tables only, which are few.
const HEALTH: &str = "
    SELECT json_build_object(
        'database', current_database(),
        'deadTuples', (SELECT coalesce(json_agg(json_build_object(
            'schema', t.schemaname, 'table', t.relname, 'liveTuples', t.n_live_tup,
            'deadTuples', t.n_dead_tup, 'lastVacuum', t.last_vacuum,
            'lastAutovacuum', t.last_autovacuum,
            'deadPercentage', round(100.0 * t.n_dead_tup / greatest(t.n_live_tup + t.n_dead_tup, 1), 2))
            ORDER BY t.n_dead_tup DESC), '[]') FROM pg_stat_user_tables t
            WHERE t.schemaname = 'wakeline'),
        'hotUpdates', (SELECT coalesce(json_agg(json_build_object(
            'schema', t.schemaname, 'table', t.relname, 'hotUpdates', t.n_tup_hot_upd,
            'totalUpdates', t.n_tup_upd,
            'hotUpdatePercentage', round(100.0 * t.n_tup_hot_upd / t.n_tup_upd, 2))
            ORDER BY t.n_tup_upd DESC), '[]') FROM pg_stat_user_tables t
            WHERE t.schemaname = 'wakeline' AND t.n_tup_upd > 0),
        'indexCache', (SELECT coalesce(json_agg(json_build_object(
            'schema', i.schemaname, 'table', i.relname, 'index', i.indexrelname,
            'cacheHits', i.idx_blks_hit, 'diskReads', i.idx_blks_read,
            'cacheHitRatio', round(100.0 * i.idx_blks_hit / (i.idx_blks_hit + i.idx_blks_read), 2))
            ORDER BY i.idx_blks_hit DESC), '[]') FROM pg_statio_user_indexes i
            WHERE i.schemaname = 'wakeline' AND i.idx_blks_hit + i.idx_blks_read > 0),
        'tableCache', (SELECT coalesce(json_agg(json_build_object(
            'schema', i.schemaname, 'table', i.relname,
            'cacheHits', i.heap_blks_hit, 'diskReads', i.heap_blks_read,
            'cacheHitRatio', round(100.0 * i.heap_blks_hit / (i.heap_blks_hit + i.heap_blks_read), 2))
            ORDER BY i.heap_blks_hit DESC), '[]') FROM pg_statio_user_tables i
            WHERE i.schemaname = 'wakeline' AND i.heap_blks_hit + i.heap_blks_read > 0),
        'tableSizes', (SELECT coalesce(json_agg(json_build_object(
            'schema', t.schemaname, 'table', t.relname,
            'totalBytes', pg_total_relation_size(t.relid))
            ORDER BY pg_total_relation_size(t.relid) DESC), '[]') FROM pg_stat_user_tables t
            WHERE t.schemaname = 'wakeline')
    )::text AS health";
