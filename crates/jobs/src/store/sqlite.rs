//! The steps on SQLite: the single writer makes each of them a plain sequence of statements.

mod frames;
mod jobs;
mod pieces;
mod providers;
mod results;
mod tasks;
mod users;
mod workers;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures_util::FutureExt;
use rusqlite::Connection;
use wakeline_bus::{Wakes, Write};
use wakeline_store::{Migrations, Sqlite};

use self::pieces::SqlitePieces;
use super::Step;
use crate::{results::Pieces, topic};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("sqlite/001_tables.sql"),
        include_str!("sqlite/003_results.sql"),
        include_str!("sqlite/004_frames.sql"),
        include_str!("sqlite/005_guests.sql"),
        include_str!("sqlite/006_pieces.sql"),
    ],
};

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
    pieces: Arc<dyn Pieces>,
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
            pieces: Arc::new(SqlitePieces::new(sqlite.clone(), clock.clone())),
            sqlite,
            clock,
        }
    }

    /// A step of the writer, at the time of its turn.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
        step: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Write<T> {
        let (sqlite, clock) = (self.sqlite.clone(), self.clock.clone());
        let run = async move {
            let turn = sqlite.write(kind, move |connection| Ok(step(connection, clock())?));
            turn.await
        };
        Write::new(topic::DOOR, run, wakes)
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        question: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Step<'_, T> {
        let clock = self.clock.clone();
        self.sqlite
            .read(kind, move |connection| Ok(question(connection, clock())?))
            .boxed()
    }
}
