//! The steps on SQLite: the single writer makes each of them a plain sequence of statements.

mod names;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use wakeline_store::{Error, Migrations, Sqlite};

use super::names::Names;
use crate::DOOR;

pub const MIGRATIONS: Migrations = Migrations {
    door: DOOR,
    steps: &[include_str!("sqlite/001_tables.sql")],
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
    names: Arc<Names>,
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
}

/// What a column holds does not fit.
fn wrong(text: impl fmt::Display) -> Error {
    Error::Failed(format!("what is stored cannot be read: {text}"))
}
