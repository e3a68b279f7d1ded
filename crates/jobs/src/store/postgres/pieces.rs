//! Pieces of large answers on PostgreSQL, each a statement by itself.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_store::{Error, Postgres};

use super::only;
use crate::{
    results::{GRACE, Pieces, REMOVED_AT_ONCE, lasting},
    store::Step,
};

#[derive(Debug)]
pub(super) struct PostgresPieces(pub(super) Postgres);

impl PostgresPieces {
    async fn ask(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, Error> {
        let mut rows = self.0.query(kind, statement, parameters).await?;
        only(&rows)?;
        Ok(rows.swap_remove(0))
    }
}

impl Pieces for PostgresPieces {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> Step<'_, bool> {
        async move {
            let statement = "SELECT wakeline.jobs_piece_add($1, $2, $3, $4)";
            let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
                (&upload, Type::UUID),
                (&number, Type::INT8),
                (&&*bytes, Type::BYTEA),
                (&lasting(ttl), Type::INT8),
            ];
            Ok(self.ask("add_piece", statement, &parameters).await?.get(0))
        }
        .boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> Step<'_, Option<Bytes>> {
        async move {
            let statement = "SELECT wakeline.jobs_piece_get($1, $2, $3)";
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&upload, Type::UUID),
                (&number, Type::INT8),
                (&lasting(GRACE), Type::INT8),
            ];
            let row = self.ask("get_piece", statement, &parameters).await?;
            let found: Option<&[u8]> = row.get(0);
            Ok(found.map(Bytes::copy_from_slice))
        }
        .boxed()
    }

    fn remove(&self, upload: Uuid) -> Step<'_, bool> {
        async move {
            let statement = "SELECT wakeline.jobs_upload_remove($1, $2)";
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&upload, Type::UUID), (&REMOVED_AT_ONCE, Type::INT8)];
            let row = self.ask("remove_pieces", statement, &parameters).await?;
            Ok(row.get::<_, i64>(0) == 0)
        }
        .boxed()
    }
}
