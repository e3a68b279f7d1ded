//! The reads on SQLite.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rusqlite::{
    Connection, OptionalExtension, Result, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};
use uuid::Uuid;
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    segment::MAX_MESSAGES,
    store::read::{PositionRange, ReadStore, Row, SegmentSpan, Value},
};

/// The statement in this database's words. Times are microseconds here anyway.
fn worded(statement: &str, now: i64) -> String {
    statement
        .replace("wakeline.", "")
        .replace("{now}", &now.to_string())
        .replace("{at ", "(")
        .replace("{us ", "(")
        .replace('}', ")")
        .replace('$', "?")
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match self {
            Self::Number(number) => number.to_sql(),
            Self::Text(text) => text.to_sql(),
            Self::Id(id) => id.to_sql(),
        }
    }
}

fn value(column: usize, value: ValueRef<'_>) -> Result<Value> {
    Ok(match value {
        ValueRef::Null => Value::Number(None),
        ValueRef::Integer(number) => Value::Number(Some(number)),
        ValueRef::Text(_) => Value::Text(Some(value.as_str()?.to_owned())),
        ValueRef::Blob(bytes) => {
            let id = Uuid::from_slice(bytes).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), error.into())
            })?;
            Value::Id(Some(id))
        }
        ValueRef::Real(_) => {
            return Err(rusqlite::Error::InvalidColumnType(
                column,
                "a read selects no fractions".into(),
                value.data_type(),
            ));
        }
    })
}

impl ReadStore for SqliteStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        self.read(kind, move |connection, now| {
            let mut statement = connection.prepare(&worded(statement, now))?;
            let names = statement.column_names().map(str::to_owned);
            let columns: Arc<[String]> = names.collect();
            statement
                .query_map(params_from_iter(parameters), |row| {
                    let values = 0..columns.len();
                    let values = values.map(|column| value(column, row.get_ref(column)?));
                    Ok(Row {
                        columns: columns.clone(),
                        values: values.collect::<Result<_>>()?,
                    })
                })?
                .collect()
        })
    }

    fn segment_spans(
        &self,
        ranges: Vec<PositionRange>,
        count: i64,
    ) -> BoxFuture<'_, Result<Vec<SegmentSpan>, Error>> {
        self.read("browse", move |connection, _| {
            segment_spans(connection, &ranges, count)
        })
    }

    fn positions_at(&self, times: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.read("browse", move |connection, _| {
            times
                .iter()
                .map(|(partition, at)| position_at(connection, *partition, *at))
                .collect()
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>> {
        self.read("health", |connection, _| {
            let pragma = |name: &str| {
                connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0))
            };
            Ok(serde_json::json!({
                "database": "sqlite",
                "totalBytes": pragma("page_count")? * pragma("page_size")?,
                "freeBytes": pragma("freelist_count")? * pragma("page_size")?,
                "deadTuples": [], "hotUpdates": [], "indexCache": [], "tableCache": [],
                "tableSizes": [],
            }))
        })
    }
}

fn segment_spans(
    connection: &Connection,
    ranges: &[PositionRange],
    count: i64,
) -> Result<Vec<SegmentSpan>> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, created_at FROM queue_segment
         WHERE partition_id = ?1 AND last >= ?2 AND last < ?3 + ?4 AND first < ?3
         ORDER BY last DESC LIMIT ?5",
    )?;
    let mut segment_spans: Vec<SegmentSpan> = Vec::new();
    for range in ranges {
        let partition = range.partition;
        // A segment that ends behind the range can only start so far before its end.
        let longest = MAX_MESSAGES as i64;
        let parameters = [partition, range.from, range.to, longest, count];
        let found = statement.query_map(parameters, |row| {
            Ok(SegmentSpan {
                partition,
                first: row.get("first")?,
                last: row.get("last")?,
                created_us: row.get("created_at")?,
            })
        })?;
        for head in found {
            segment_spans.push(head?);
        }
    }
    segment_spans
        .sort_by_key(|head| std::cmp::Reverse((head.created_us, head.partition, head.last)));
    segment_spans.truncate(usize::try_from(count).unwrap_or_default());
    Ok(segment_spans)
}

/// Found by halving, because times within a partition never go back.
fn position_at(connection: &Connection, partition: i64, at: i64) -> Result<i64> {
    let bounds: Option<(i64, i64)> = connection
        .prepare_cached("SELECT first_position, next_position FROM queue_partition WHERE id = ?1")?
        .query_row([partition], |row| {
            Ok((row.get("first_position")?, row.get("next_position")?))
        })
        .optional()?;
    let Some((mut low, mut high)) = bounds else {
        return Ok(0);
    };
    let mut probe = connection.prepare_cached(
        "SELECT first, last, created_at FROM queue_segment
         WHERE partition_id = ?1 AND last >= ?2 ORDER BY last LIMIT 1",
    )?;
    while low < high {
        let middle = i64::midpoint(low, high);
        let segment: Option<(i64, i64, i64)> = probe
            .query_row([partition, middle], |row| {
                Ok((row.get("first")?, row.get("last")?, row.get("created_at")?))
            })
            .optional()?;
        match segment {
            Some((_, last, created)) if created < at => low = last + 1,
            Some((first, ..)) => high = first.min(middle),
            None => high = middle,
        }
    }
    Ok(high)
}
