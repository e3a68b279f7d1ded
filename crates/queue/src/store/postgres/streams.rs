//! Stream queries and their state.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::Type;
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    store::{Streams, wakes},
    stream::{Registered, Registration, StateQuery, StateRow},
    topic,
};

impl Streams for PostgresStore {
    fn register(&self, query: Registration) -> Write<Registered> {
        let postgres = self.postgres.clone();
        let run = async move {
            let id = Uuid::now_v7();
            let rows = postgres
                .query(
                    "stream",
                    "SELECT id, is_fresh, is_reset, is_mismatch
                     FROM wakeline.queue_stream_register($1, $2, $3, $4, $5, $6)",
                    &[
                        (&id, Type::UUID),
                        (&query.name, Type::TEXT),
                        (&query.source_queue, Type::TEXT),
                        (&query.sink_queue, Type::TEXT),
                        (&query.config_hash, Type::TEXT),
                        (&query.reset, Type::BOOL),
                    ],
                )
                .await?;
            Ok(Registered {
                id: rows[0].get(0),
                is_fresh: rows[0].get(1),
                is_reset: rows[0].get(2),
                is_mismatch: rows[0].get(3),
            })
        };
        Write::new(topic::DOOR, run, wakes::none)
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        async move {
            let limit = i64::from(query.limit);
            let rows = self
                .postgres
                .query(
                    "states",
                    "SELECT s.key, s.value, (extract(epoch FROM s.updated_at) * 1000000)::bigint
                     FROM wakeline.queue_stream_state s
                     WHERE s.stream_id = $1 AND s.partition_id = $2
                         AND (cardinality($3) = 0 OR s.key = ANY ($3))
                         AND ($4 IS NULL OR starts_with(s.key, $4))
                         AND ($5 IS NULL OR CASE
                             WHEN json_typeof(s.value::json) = 'object'
                                 AND json_typeof(wakeline.queue_plain(s.value) -> 'windowEnd') = 'number'
                             THEN ((wakeline.queue_plain(s.value) -> 'windowEnd')::text)::numeric <= $5 ELSE false END)
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
                    key: row.get(0),
                    value: row.get(1),
                    updated_us: row.get(2),
                })
                .collect())
        }
        .boxed()
    }
}
