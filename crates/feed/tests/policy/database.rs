//! A database of the test's own.

use std::sync::Arc;

use wakeline_bus::Bus;
use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};
use wakeline_wake::{Engine, Limits};

pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        _file: SqliteDatabase,
    },
    Postgres {
        postgres: Postgres,
        _database: PostgresDatabase,
    },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let file = SqliteDatabase::new();
        Self::Sqlite {
            sqlite: file.open(&[sqlite::MIGRATIONS]),
            _file: file,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let database = PostgresDatabase::new(&[postgres::MIGRATIONS]).await;
        Self::Postgres {
            postgres: database.open(&[postgres::MIGRATIONS]).await,
            _database: database,
        }
    }

    /// Another store on it is another node.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite { sqlite, .. } => {
                Arc::new(SqliteStore::new(sqlite.clone(), system_clock()))
            }
            Self::Postgres { postgres, .. } => Arc::new(PostgresStore::new(postgres.clone())),
        }
    }
}

/// A bus that nobody else is on: for writes whose wakes no test waits for.
pub(crate) fn bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}
