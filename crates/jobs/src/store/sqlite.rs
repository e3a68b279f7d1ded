//! The steps on SQLite: the single writer makes each of them a plain sequence of statements.

mod chunks;
mod frames;
mod jobs;
mod providers;
mod results;
mod tasks;
mod users;
mod values;
mod workers;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures_util::FutureExt;
use rusqlite::{Connection, params_from_iter};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{Error, Migrations, Sqlite};

use self::chunks::SqliteChunks;
use super::{Query, Row, StoreFuture, Value};
use crate::{results::ChunkStore, topic};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("sqlite/001_users.sql"),
        include_str!("sqlite/002_jobs.sql"),
        include_str!("sqlite/003_tasks.sql"),
        include_str!("sqlite/004_providers.sql"),
        include_str!("sqlite/005_results.sql"),
        include_str!("sqlite/006_frames.sql"),
    ],
};

type Result<T> = std::result::Result<T, Error>;

/// Microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The process' own clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    })
}

pub struct SqliteStore {
    sqlite: Sqlite,
    clock: Clock,
    chunks: Arc<dyn ChunkStore>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteStore")
            .field("sqlite", &self.sqlite)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    #[must_use]
    pub fn new(sqlite: Sqlite, clock: Clock) -> Self {
        Self {
            chunks: Arc::new(SqliteChunks::new(sqlite.clone(), clock.clone())),
            sqlite,
            clock,
        }
    }

    /// A turn of the writer, at the time when the turn comes.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        step: impl FnOnce(&Connection, i64) -> Result<T> + Send + 'static,
    ) -> Write<T> {
        let (sqlite, clock) = (self.sqlite.clone(), self.clock.clone());
        let run = async move {
            let turn = sqlite.write(kind, move |connection| step(connection, clock()));
            turn.await
        };
        Write::new(topic::DOOR, run, wakes)
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        query: impl FnOnce(&Connection, i64) -> Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let clock = self.clock.clone();
        self.sqlite
            .read(kind, move |connection| query(connection, clock()))
            .boxed()
    }
}

impl Query for SqliteStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>> {
        self.read(kind, move |connection, _| {
            rows(connection, statement, parameters)
        })
    }
}

/// The rows of a statement that is written for PostgreSQL.
fn rows(connection: &Connection, statement: &str, parameters: Vec<Value>) -> Result<Vec<Row>> {
    let mut statement = connection.prepare_cached(&worded(statement))?;
    let names: Arc<[String]> = statement.column_names().map(str::to_owned).collect();
    let rows = statement.query_map(params_from_iter(parameters), |row| {
        let values = (0..names.len()).map(|column| values::read(row.get_ref(column)?));
        Ok(Row {
            names: names.clone(),
            values: values.collect::<rusqlite::Result<_>>()?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The statement in this database's words.
fn worded(statement: &str) -> String {
    statement
        .replace("wakeline.", "")
        .replace("{in ", "IN (SELECT value FROM json_each(")
        .replace('}', "))")
        .replace('$', "?")
}
