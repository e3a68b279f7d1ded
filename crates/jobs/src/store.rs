//! The durable steps. Two implementations: [`sqlite`] and [`postgres`].

mod chat;
pub mod frames;
mod jobs;
pub mod postgres;
mod progress;
mod providers;
mod query;
mod results;
pub mod sqlite;
mod tasks;
mod users;
mod workers;

use std::time::Duration;

use futures_util::future::BoxFuture;
use wakeline_store::Error;

use crate::{name::FullName, page::ListPage};

pub(crate) use self::query::{values_of, write};
pub use self::{
    chat::Chat,
    jobs::Jobs,
    progress::Progress,
    providers::Providers,
    query::{Column, Commit, Query, Row, Value},
    tasks::Tasks,
    users::Users,
    workers::Workers,
};

/// The future of a read. A dropped one has done nothing.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Each method of these traits is one atomic step. One that returns a [`Write`](wakeline_bus::Write)
/// shares its commit with the other writes of the same moment, and says which waiters it wakes; once
/// committed it runs to its end, whether its future is dropped or not. What a repeat does, each write
/// says.
///
/// Whose clock: SQLite's is the process', PostgreSQL's is the database server's, so that nodes agree
/// on when a worker is lost.
pub trait Store: Workers + Jobs + Tasks + Providers + std::fmt::Debug {}

impl<S: Workers + Jobs + Tasks + Providers + std::fmt::Debug> Store for S {}

/// As both databases keep it.
pub(crate) fn in_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// The rows of a page, each with the `total` of the whole list. An empty page has one row without an
/// id, which has the total.
fn page_of<T>(rows: &[Row], item: impl Fn(&Row) -> T) -> Result<ListPage<T>, Error> {
    let filled = rows.iter().filter(|row| !row.is_null("id"));
    Ok(ListPage {
        items: filled.map(item).collect(),
        total: only(rows)?.get("total"),
    })
}

/// The only row of an answer that has one.
fn only(rows: &[Row]) -> Result<&Row, Error> {
    rows.first()
        .ok_or_else(|| Error::OutcomeUnknown("an answer without a row".into()))
}

impl FullName {
    fn from_row(row: &Row) -> Self {
        Self {
            room: row.get("room"),
            category: row.get("category"),
            name: row.get("name"),
        }
    }
}
