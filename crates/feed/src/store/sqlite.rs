//! The store on SQLite: with a single writer, each method is a plain sequence of statements.

mod definitions;
mod facts;
mod keys;
mod log;
mod names;
mod purging;
mod queries;
mod save;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures_util::FutureExt;
use rusqlite::Connection;
use wakeline_store::{Error, Migrations, Sqlite};

use super::{StoreFuture, names::NameCache};
use crate::DOOR;

pub const MIGRATIONS: Migrations = Migrations {
    door: DOOR,
    steps: &[
        include_str!("sqlite/001_facts.sql"),
        include_str!("sqlite/002_definitions.sql"),
        include_str!("sqlite/003_user_keys.sql"),
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

/// Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct SqliteStore {
    sqlite: Sqlite,
    clock: Clock,
    pub(super) names: Arc<NameCache>,
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
            sqlite,
            clock,
            names: Arc::default(),
        }
    }

    /// A turn of the writer, with the time at which it begins.
    fn write<T: Send + 'static, F>(
        &self,
        kind: &'static str,
        step: F,
    ) -> impl Future<Output = Result<T, Error>> + Send + use<T, F>
    where
        F: FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    {
        let (sqlite, clock) = (self.sqlite.clone(), self.clock.clone());
        async move {
            sqlite
                .write(kind, move |connection| Ok(step(connection, clock())?))
                .await
        }
    }

    /// Reads see committed facts only.
    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        read: impl FnOnce(&Connection, &NameCache) -> Result<T, Error> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let names = self.names.clone();
        self.sqlite
            .read(kind, move |connection| read(connection, &names))
            .boxed()
    }
}
