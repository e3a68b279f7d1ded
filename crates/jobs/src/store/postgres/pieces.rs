//! Chunks of large answers on PostgreSQL, each a statement by itself.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, TryFutureExt};
use uuid::Uuid;
use wakeline_store::{Error, Postgres};

use super::rows;
use crate::{
    results::{GRACE, Pieces, REMOVED_AT_ONCE, lasting},
    store::{Column, Step, Value, only, values_of},
};

#[derive(Debug)]
pub(super) struct PostgresPieces(pub(super) Postgres);

impl PostgresPieces {
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

impl Pieces for PostgresPieces {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> Step<'_, bool> {
        let statement = "SELECT wakeline.jobs_chunk_add($1, $2, $3, $4) AS value";
        let parameters = values_of![upload, number, bytes, lasting(ttl)];
        self.value("add_chunk", statement, parameters).boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> Step<'_, Option<Bytes>> {
        let statement = "SELECT wakeline.jobs_chunk_get($1, $2, $3) AS value";
        let parameters = values_of![upload, number, lasting(GRACE)];
        self.value("get_chunk", statement, parameters).boxed()
    }

    fn remove(&self, upload: Uuid) -> Step<'_, bool> {
        let statement = "SELECT wakeline.jobs_upload_remove($1, $2) AS value";
        let parameters = values_of![upload, REMOVED_AT_ONCE];
        let left = self.value::<i64>("remove_chunks", statement, parameters);
        left.map_ok(|left| left == 0).boxed()
    }
}
