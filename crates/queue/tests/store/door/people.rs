//! What people ask for goes past the watch.

use futures_util::future::BoxFuture;
use wakeline_queue::{
    browse::{NewTrace, Retried},
    store::{
        browse::{Address, Curate, Retry},
        read::{Head, Read, Row, Slice, Value},
    },
    tally::Count,
};
use wakeline_store::Error;

use super::Watched;

impl Read for Watched {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        self.inner.rows(kind, statement, parameters)
    }

    fn heads(&self, slices: Vec<Slice>, count: i64) -> BoxFuture<'_, Result<Vec<Head>, Error>> {
        self.inner.heads(slices, count)
    }

    fn positions_at(&self, asked: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.inner.positions_at(asked)
    }

    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>> {
        self.inner.health()
    }
}

impl Curate for Watched {
    fn delete_message(&self, address: Address) -> BoxFuture<'_, Result<bool, Error>> {
        self.inner.delete_message(address)
    }

    fn retry(&self, retry: Retry) -> BoxFuture<'_, Result<Retried, Error>> {
        self.inner.retry(retry)
    }

    fn bury(
        &self,
        address: Address,
        group: Option<String>,
        error: String,
    ) -> BoxFuture<'_, Result<u64, Error>> {
        self.inner.bury(address, group, error)
    }

    fn add_trace(&self, trace: NewTrace) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.add_trace(trace)
    }

    fn add_counts(&self, counts: Vec<Count>) -> BoxFuture<'_, Result<(), Error>> {
        self.inner.add_counts(counts)
    }
}
