//! What people change: one call of a function each.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    browse::{NewTrace, Retried},
    id,
    store::browse::{Address, Curate, Retry},
};

impl Curate for PostgresStore {
    fn delete_message(&self, address: Address) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            let rows = self
                .postgres
                .query(
                    "delete_message",
                    "SELECT wakeline.queue_delete_message($1, $2, $3, $4)",
                    &[
                        (&address.partition, Type::INT8),
                        (&address.transaction_id, Type::TEXT),
                        (&address.given(), Type::INT8),
                        (&address.hash(), Type::UUID),
                    ],
                )
                .await?;
            Ok(rows[0].get(0))
        }
        .boxed()
    }

    fn retry(&self, retry: Retry) -> BoxFuture<'_, Result<Retried, Error>> {
        async move {
            let hash = retry.given.as_deref().map(id::hash);
            let rows = self
                .postgres
                .query(
                    "retry",
                    "SELECT at, created_us, is_kept
                     FROM wakeline.queue_retry($1, $2, $3, $4)",
                    &[
                        (&retry.letter, Type::INT8),
                        (&hash, Type::UUID),
                        (&retry.kept, Type::TEXT),
                        (&retry.fresh, Type::TEXT),
                    ],
                )
                .await?;
            let Some(row) = rows.first() else {
                return Ok(Retried::Gone);
            };
            let Some(position) = row.get::<_, Option<i64>>(0) else {
                return Ok(Retried::NoGroup);
            };
            Ok(retry.done(row.get(1), position, row.get(2)))
        }
        .boxed()
    }

    fn bury(
        &self,
        address: Address,
        group: Option<String>,
        error: String,
    ) -> BoxFuture<'_, Result<u64, Error>> {
        async move {
            let rows = self
                .postgres
                .query(
                    "bury",
                    "SELECT wakeline.queue_bury($1, $2, $3, $4, $5, $6)",
                    &[
                        (&address.partition, Type::INT8),
                        (&address.transaction_id, Type::TEXT),
                        (&address.given(), Type::INT8),
                        (&address.hash(), Type::UUID),
                        (&group, Type::TEXT),
                        (&error, Type::TEXT),
                    ],
                )
                .await?;
            Ok(u64::try_from(rows[0].get::<_, i64>(0)).unwrap_or_default())
        }
        .boxed()
    }

    fn add_trace(&self, trace: NewTrace) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.postgres
                .query(
                    "trace",
                    "SELECT wakeline.queue_add_trace($1, $2, $3, $4, $5, $6, $7, $8)",
                    &[
                        (&trace.id, Type::UUID),
                        (&trace.partition, Type::INT8),
                        (&trace.transaction_id, Type::TEXT),
                        (&trace.group, Type::TEXT),
                        (&trace.event, Type::TEXT),
                        (&trace.data, Type::TEXT),
                        (&trace.worker, Type::TEXT),
                        (&trace.names, Type::TEXT_ARRAY),
                    ],
                )
                .await
                .map(drop)
        }
        .boxed()
    }
}
