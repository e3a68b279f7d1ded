//! The steps on SQLite: the single writer makes each of them a plain sequence of statements.

mod chat;
mod chunks;
mod frames;
mod jobs;
mod progress;
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

use futures_util::{FutureExt, future::BoxFuture};
use rusqlite::{Connection, OptionalExtension, Params, params_from_iter, types::FromSql};
use wakeline_bus::{Wakes, Write};
use wakeline_store::{Error, Migrations, Sqlite};

use self::chunks::SqliteChunks;
use super::{Commit, Query, Row, StoreFuture, Value};
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
    sqlite: TimedSqlite,
    chunks: Arc<dyn ChunkStore>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sqlite.fmt(out)
    }
}

impl SqliteStore {
    #[must_use]
    pub fn new(sqlite: Sqlite, clock: Clock) -> Self {
        let sqlite = TimedSqlite { sqlite, clock };
        Self {
            chunks: Arc::new(SqliteChunks(sqlite.clone())),
            sqlite,
        }
    }

    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        step: impl FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
    ) -> Write<T> {
        Write::new(topic::DOOR, self.sqlite.write(kind, step), wakes)
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        query: impl FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.sqlite.read(kind, query).boxed()
    }
}

/// The database with the clock of its times.
#[derive(Clone)]
struct TimedSqlite {
    sqlite: Sqlite,
    clock: Clock,
}

impl fmt::Debug for TimedSqlite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sqlite.fmt(out)
    }
}

impl TimedSqlite {
    /// A turn of the writer.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let Self { sqlite, clock } = self.clone();
        let step = move |connection: &Connection| step(&Session::new(connection, &clock));
        async move { sqlite.write(kind, step).await }.boxed()
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        query: impl FnOnce(&Session<'_>) -> Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        let clock = self.clock.clone();
        let query = move |connection: &Connection| query(&Session::new(connection, &clock));
        self.sqlite.read(kind, query)
    }
}

impl Query for SqliteStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>> {
        self.read(kind, move |session| session.rows(statement, parameters))
    }

    fn written_rows(
        &self,
        commit: Commit,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'static, Result<Vec<Row>>> {
        let step = move |session: &Session<'_>| session.rows(statement, parameters);
        self.sqlite.write(commit.kind(), step)
    }
}

/// A connection, and the time when its turn came. Statements are kept prepared.
struct Session<'a> {
    connection: &'a Connection,
    now: i64,
}

impl<'a> Session<'a> {
    fn new(connection: &'a Connection, clock: &Clock) -> Self {
        Self {
            connection,
            now: clock(),
        }
    }

    /// The rows of a statement that is written for both databases.
    fn rows(&self, statement: &str, mut parameters: Vec<Value>) -> Result<Vec<Row>> {
        let mut worded = statement
            .replace("wakeline.", "")
            .replace("{in ", "IN (SELECT value FROM json_each(");
        if worded.contains("{now}") {
            parameters.push(self.now.into());
            worded = worded.replace("{now}", &format!("${}", parameters.len()));
        }
        let worded = worded.replace('}', "))").replace('$', "?");
        let mut statement = self.connection.prepare_cached(&worded)?;
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

    /// How many rows the statement has changed.
    fn execute(&self, statement: &str, parameters: impl Params) -> Result<usize> {
        let mut statement = self.connection.prepare_cached(statement)?;
        Ok(statement.execute(parameters)?)
    }

    /// The only column of all rows.
    fn column<T: FromSql>(&self, statement: &str, parameters: impl Params) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let values = statement.query_map(parameters, |row| row.get(0))?;
        Ok(values.collect::<rusqlite::Result<_>>()?)
    }

    /// The only column of the first row, if there is one.
    fn optional<T: FromSql>(&self, statement: &str, parameters: impl Params) -> Result<Option<T>> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let value = statement.query_row(parameters, |row| row.get(0));
        Ok(value.optional()?)
    }

    /// The only column of the only row.
    fn value<T: FromSql>(&self, statement: &str, parameters: impl Params) -> Result<T> {
        let value = self.optional(statement, parameters)?;
        Ok(value.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }
}
