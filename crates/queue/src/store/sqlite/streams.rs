//! Stream queries and their state.

use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    store::{StreamStore, wakes},
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
    write_batch::StateChange,
};

impl StreamStore for SqliteStore {
    fn register(&self, query: StreamRegistration) -> Write<RegisterResult> {
        self.write(
            "stream",
            move |connection, now| register(connection, &query, now),
            wakes::none,
        )
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        self.read("states", move |connection, _| states(connection, &query))
    }
}

fn register(
    connection: &Connection,
    query: &StreamRegistration,
    now: i64,
) -> Result<RegisterResult> {
    let known: Option<(Uuid, String)> = connection
        .query_row(
            "SELECT id, config_hash FROM queue_stream WHERE name = ?1",
            [&query.name],
            |row| Ok((row.get("id")?, row.get("config_hash")?)),
        )
        .optional()?;
    let Some((id, config_hash)) = known else {
        let id = Uuid::now_v7();
        connection.execute(
            "INSERT INTO queue_stream (id, name, source_queue, sink_queue, config_hash, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                id,
                query.name,
                query.source_queue,
                query.sink_queue,
                query.config_hash,
                now
            ],
        )?;
        return Ok(RegisterResult {
            id,
            is_new: true,
            is_reset: false,
            is_mismatch: false,
        });
    };
    let is_mismatch = config_hash != query.config_hash && !query.reset;
    if query.reset {
        connection.execute("DELETE FROM queue_stream_state WHERE stream_id = ?1", [id])?;
    }
    if !is_mismatch {
        connection.execute(
            "UPDATE queue_stream SET config_hash = ?2, source_queue = ?3, sink_queue = ?4
             WHERE id = ?1",
            params![id, query.config_hash, query.source_queue, query.sink_queue],
        )?;
    }
    Ok(RegisterResult {
        id,
        is_new: false,
        is_reset: query.reset,
        is_mismatch,
    })
}

pub(super) fn write(connection: &Connection, change: &StateChange, now: i64) -> Result<()> {
    for (key, value) in &change.values {
        match value {
            Some(value) => connection
                .prepare_cached(
                    "INSERT INTO queue_stream_state VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
                )?
                .execute(params![change.stream, change.partition, key, value, now])?,
            None => connection
                .prepare_cached(
                    "DELETE FROM queue_stream_state
                     WHERE stream_id = ?1 AND partition_id = ?2 AND key = ?3",
                )?
                .execute(params![change.stream, change.partition, key])?,
        };
    }
    Ok(())
}

fn states(connection: &Connection, query: &StateQuery) -> Result<Vec<StateRow>> {
    let read = |row: &Row<'_>| {
        Ok(StateRow {
            key: row.get("key")?,
            value: row.get("value")?,
            updated_us: row.get("updated_at")?,
        })
    };
    let mut statement = connection.prepare_cached(
        "SELECT key, value, updated_at FROM queue_stream_state
         WHERE stream_id = ?1 AND partition_id = ?2
             AND (?3 IS NULL OR key IN (SELECT value FROM json_each(?3)))
             AND (?4 IS NULL OR substr(key, 1, length(?4)) = ?4)
             AND (?5 IS NULL OR (json_type(value, '$.windowEnd') IN ('integer', 'real')
                 AND value ->> '$.windowEnd' <= ?5))
         ORDER BY key LIMIT ?6",
    )?;
    let keys = (!query.keys.is_empty())
        .then(|| serde_json::to_string(&query.keys).expect("strings are JSON"));
    let rows = statement.query_map(
        params![
            query.stream,
            query.partition,
            keys,
            query.prefix,
            query.ripe_at_or_before,
            query.limit
        ],
        read,
    )?;
    rows.collect()
}
