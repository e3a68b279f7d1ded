//! Chunks of large answers on PostgreSQL, each a statement by itself.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};
use uuid::Uuid;
use wakeline_store::{Error, Postgres};

use super::rows;
use crate::{
    results::{CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, ChunkStore, lasting},
    store::{Column, StoreFuture, Value, only, values_of},
};

#[derive(Debug)]
pub(super) struct PostgresChunks(pub(super) Postgres);

impl PostgresChunks {
    /// The only column, called `value`, of the only row.
    async fn value<T: Column>(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> Result<T, Error> {
        let rows = rows(&self.0, kind, statement, &parameters).await?;
        Ok(only(&rows)?.get("value"))
    }
}

impl ChunkStore for PostgresChunks {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> StoreFuture<'_, bool> {
        let statement = "SELECT wakeline.jobs_chunk_add($1, $2, $3, $4) AS value";
        let parameters = values_of![upload, number, bytes, lasting(ttl)];
        self.value("add_chunk", statement, parameters).boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> StoreFuture<'_, Option<Bytes>> {
        let statement = "SELECT wakeline.jobs_chunk_get($1, $2, $3) AS value";
        let parameters = values_of![upload, number, lasting(CHUNK_GRACE)];
        self.value("get_chunk", statement, parameters).boxed()
    }

    fn remove(&self, upload: Uuid) -> StoreFuture<'_, bool> {
        let statement = "SELECT wakeline.jobs_upload_remove($1, $2) AS value";
        let parameters = values_of![upload, CHUNKS_REMOVED_AT_ONCE];
        let left = self.value::<i64>("remove_chunks", statement, parameters);
        left.map_ok(|left| left == 0).boxed()
    }
}
