//! Queries on SQLite.

use std::sync::Arc;

use futures_util::FutureExt;
use rusqlite::{
    Connection,
    types::{Value, ValueRef},
};
use wakeline_store::Error;

use super::SqliteStore;
use crate::{
    query::Query,
    store::{
        Concern, ConcernQuery, DeltaQuery, GivenTuple, Queries, Seq, StoreFuture, TupleRow,
        TuplesQuery,
        names::{IdsByName, NameTables},
        queries::{self, RawRow, RunStatement},
        sql::{Dialect, MAX_TABLES, Statement},
    },
};

impl SqliteStore {
    /// A query is one turn of a reader, however many statements it runs.
    fn run<T: Send + 'static>(
        &self,
        kind: &'static str,
        query: &Arc<Query>,
        run: impl AsyncFnOnce(&Connection, &IdsByName) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let query = query.clone();
        async move {
            let ids = self.ids_of(&query).await?;
            let turn = move |connection: &Connection| {
                let done = run(connection, &ids).now_or_never();
                done.expect("a statement of a reader is never pending")
            };
            self.sqlite.read(kind, turn).await
        }
        .boxed()
    }
}

impl Queries for SqliteStore {
    fn delta_page(&self, delta: DeltaQuery) -> StoreFuture<'_, Vec<TupleRow>> {
        let query = delta.query.clone();
        let run = async move |connection: &Connection, ids: &IdsByName| {
            queries::delta_page(connection, ids, &delta).await
        };
        self.run("feed_delta_page", &query, run)
    }

    fn tuples_of(&self, tuples: TuplesQuery) -> StoreFuture<'_, Vec<GivenTuple>> {
        let query = tuples.query.clone();
        let run = async move |connection: &Connection, ids: &IdsByName| {
            queries::tuples_of(connection, ids, &tuples).await
        };
        self.run("feed_tuples", &query, run)
    }

    fn concerns(&self, concerns: ConcernQuery) -> StoreFuture<'_, Vec<Concern>> {
        let query = concerns.query.clone();
        let run = async move |connection: &Connection, ids: &IdsByName| {
            queries::concerns(connection, ids, &concerns).await
        };
        self.run("feed_concerns", &query, run)
    }

    fn matches(&self, query: Arc<Query>, givens: Vec<Vec<Seq>>) -> StoreFuture<'_, Vec<bool>> {
        let asked = query.clone();
        let run = async move |connection: &Connection, ids: &IdsByName| {
            queries::matches(connection, ids, &asked, &givens).await
        };
        self.run("feed_matches", &query, run)
    }
}

impl RunStatement for Connection {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn rows(&self, _: &'static str, statement: &Statement) -> Result<Vec<RawRow>, Error> {
        let parameters = rusqlite::params_from_iter(parameters(statement));
        let mut statement = self.prepare_cached(&statement.text)?;
        let columns = statement.column_count();
        let rows = statement.query_map(parameters, |row| {
            let (mut seqs, mut hashes) = (Vec::new(), Vec::new());
            for column in 0..columns {
                match row.get_ref(column)? {
                    ValueRef::Integer(seq) => seqs.push(seq),
                    ValueRef::Blob(hash) => hashes.push(Some(hash.to_vec())),
                    _ => hashes.push(None),
                }
            }
            Ok(RawRow { seqs, hashes })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

fn parameters(statement: &Statement) -> impl Iterator<Item = Value> {
    let tables = (0..MAX_TABLES).map(|index| match statement.tables.get(index) {
        Some(table) => Value::Text(table.json()),
        None => Value::Null,
    });
    let numbers = statement.numbers.iter().copied().map(Value::Integer);
    tables.chain(numbers)
}
