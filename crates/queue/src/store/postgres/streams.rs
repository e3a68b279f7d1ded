//! Stream queries and their state.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{PostgresStore, parameters};
use crate::{
    store::{StreamStore, wakes},
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
};

impl StreamStore for PostgresStore {
    fn register(&self, query: StreamRegistration) -> Write<RegisterResult> {
        self.write(
            "stream",
            "SELECT id, is_new, is_reset, is_mismatch
             FROM wakeline.queue_stream_register($1, $2, $3, $4, $5, $6)",
            parameters![
                Uuid::now_v7() => UUID, query.name => TEXT, query.source_queue => TEXT,
                query.sink_queue => TEXT, query.config_hash => TEXT, query.reset => BOOL,
            ],
            |rows| RegisterResult {
                id: rows[0].get("id"),
                is_new: rows[0].get("is_new"),
                is_reset: rows[0].get("is_reset"),
                is_mismatch: rows[0].get("is_mismatch"),
            },
            wakes::none,
        )
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        async move {
            let limit = i64::from(query.limit);
            let rows = self
                .postgres
                .query(
                    "states",
                    "SELECT s.key, s.value, (extract(epoch FROM s.updated_at) * 1000000)::bigint
                         AS updated_us
                     FROM wakeline.queue_stream_state s
                     WHERE s.stream_id = $1 AND s.partition_id = $2
                         AND (cardinality($3) = 0 OR s.key = ANY ($3))
                         AND ($4 IS NULL OR starts_with(s.key, $4))
                         AND ($5 IS NULL OR CASE
                             WHEN json_typeof(s.value::json) = 'object'
                                 AND json_typeof(wakeline.queue_readable_json(s.value) -> 'windowEnd') = 'number'
                             THEN ((wakeline.queue_readable_json(s.value) -> 'windowEnd')::text)::numeric <= $5 ELSE false END)
                     ORDER BY s.key LIMIT $6",
                    &[
                        (&query.stream, Type::UUID),
                        (&query.partition, Type::INT8),
                        (&query.keys, Type::TEXT_ARRAY),
                        (&query.prefix, Type::TEXT),
                        (&query.ripe_at_or_before, Type::INT8),
                        (&limit, Type::INT8),
                    ],
                )
                .await?;
            Ok(rows
                .iter()
                .map(|row| StateRow {
                    key: row.get("key"),
                    value: row.get("value"),
                    updated_us: row.get("updated_us"),
                })
                .collect())
        }
        .boxed()
    }
}
