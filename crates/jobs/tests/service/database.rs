//! A database of the test's own.

use std::sync::Arc;

use wakeline_jobs::{
    results::Results,
    store::{
        Store, Users, frames,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_store::{
    Postgres,
    testing::{PostgresDatabase, SqliteDatabase},
};

pub(crate) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

/// What one node keeps where, all of it in one store.
pub(crate) struct Stores {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) users: Arc<dyn Users>,
    pub(crate) frames: Arc<dyn frames::Frames>,
    pub(crate) results: Arc<dyn Results>,
    pub(crate) postgres: Option<Postgres>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(SqliteDatabase::new())
    }

    pub(crate) async fn postgres() -> Self {
        Self::Postgres(PostgresDatabase::new(&[postgres::MIGRATIONS]).await)
    }

    /// With connections of its own.
    pub(crate) async fn open(&self) -> Stores {
        match self {
            Self::Sqlite(file) => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                let store = SqliteStore::new(sqlite, system_clock());
                Stores::of(Arc::new(store), None)
            }
            Self::Postgres(database) => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                let store = PostgresStore::new(postgres.clone());
                Stores::of(Arc::new(store), Some(postgres))
            }
        }
    }
}

impl Stores {
    fn of<S>(store: Arc<S>, postgres: Option<Postgres>) -> Self
    where
        S: Store + Users + frames::Frames + Results + 'static,
    {
        Self {
            store: store.clone(),
            users: store.clone(),
            frames: store.clone(),
            results: store,
            postgres,
        }
    }
}
