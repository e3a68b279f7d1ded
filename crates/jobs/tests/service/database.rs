//! A database of the test's own.

use std::{ops::Deref, sync::Arc};

use wakeline_jobs::{
    results::ResultBackend,
    store::{
        Store, Users, frames,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_testkit::{DatabaseKind, Fixture, OpenStore, TestDatabase, WriteBlock};

pub(crate) struct Database(TestDatabase);

impl Deref for Database {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.0
    }
}

/// The stores of one node, all in one database.
pub(crate) struct Stores {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) users: Arc<dyn Users>,
    pub(crate) frames: Arc<dyn frames::Frames>,
    pub(crate) results: Arc<dyn ResultBackend>,
}

impl Fixture for Database {
    async fn open(kind: DatabaseKind) -> Self {
        Self(TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await)
    }
}

impl Database {
    /// Stores with connections of their own.
    pub(crate) async fn stores(&self) -> Stores {
        match self.0.open().await {
            OpenStore::Sqlite(sqlite) => {
                Stores::of(Arc::new(SqliteStore::new(sqlite, system_clock())))
            }
            OpenStore::Postgres(postgres) => Stores::of(Arc::new(PostgresStore::new(postgres))),
        }
    }

    /// Runs the statements of this kind of database, bypassing the store.
    pub(crate) async fn run(&self, sqlite: &str, postgres: &str) {
        let is_postgres = self.is_postgres();
        self.execute(if is_postgres { postgres } else { sqlite })
            .await;
    }

    pub(crate) async fn block_all_writes(&self) -> WriteBlock {
        let tables = "jobs_task, jobs_worker, jobs_result";
        self.block_writes(tables).await
    }

    /// The number of stored answers, including those that no read finds.
    pub(crate) async fn answers(&self) -> i64 {
        self.count("jobs_result").await
    }
}

impl Stores {
    fn of<S>(store: Arc<S>) -> Self
    where
        S: Store + Users + frames::Frames + ResultBackend + 'static,
    {
        Self {
            store: store.clone(),
            users: store.clone(),
            frames: store.clone(),
            results: store,
        }
    }
}
