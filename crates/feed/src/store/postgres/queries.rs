//! Queries on PostgreSQL.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio_postgres::types::Type;
use wakeline_store::Error;

use super::PostgresStore;
use crate::{
    query::Query,
    store::{
        Concern, ConcernQuery, DeltaQuery, GivenTuple, Queries, Seq, StoreFuture, TupleRow,
        TuplesQuery,
        names::NameTables,
        queries::{self, RawRow, RunStatement},
        sql::{Dialect, Statement},
    },
};

impl Queries for PostgresStore {
    fn delta_page(&self, delta: DeltaQuery) -> StoreFuture<'_, Vec<TupleRow>> {
        async move {
            let ids = self.ids_of(&delta.query).await?;
            queries::delta_page(self, &ids, &delta).await
        }
        .boxed()
    }

    fn tuples_of(&self, tuples: TuplesQuery) -> StoreFuture<'_, Vec<GivenTuple>> {
        async move {
            let ids = self.ids_of(&tuples.query).await?;
            queries::tuples_of(self, &ids, &tuples).await
        }
        .boxed()
    }

    fn concerns(&self, concerns: ConcernQuery) -> StoreFuture<'_, Vec<Concern>> {
        async move {
            let ids = self.ids_of(&concerns.query).await?;
            queries::concerns(self, &ids, &concerns).await
        }
        .boxed()
    }

    fn matches(&self, query: Arc<Query>, givens: Vec<Vec<Seq>>) -> StoreFuture<'_, Vec<bool>> {
        async move {
            let ids = self.ids_of(&query).await?;
            queries::matches(self, &ids, &query, &givens).await
        }
        .boxed()
    }
}

impl RunStatement for PostgresStore {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn rows(&self, kind: &'static str, statement: &Statement) -> Result<Vec<RawRow>, Error> {
        let none = Vec::new();
        let tables = &statement.tables;
        let table = |index: usize| tables.get(index).map_or(&none, |table| &table.values);
        let parameters = [
            (&statement.text as _, Type::TEXT),
            (&statement.numbers as _, Type::INT8_ARRAY),
            (table(0) as _, Type::INT8_ARRAY),
            (table(1) as _, Type::INT8_ARRAY),
        ];
        let run = "SELECT seqs, hashes FROM wakeline.feed_run_query($1, $2, $3, $4)";
        let rows = self.ask(kind, run, &parameters).await?;
        let row = |row: tokio_postgres::Row| RawRow {
            seqs: row.get("seqs"),
            hashes: row.get("hashes"),
        };
        Ok(rows.into_iter().map(row).collect())
    }
}
