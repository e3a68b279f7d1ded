//! A database of the test's own.

use std::sync::Arc;

use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestDatabase};

pub(crate) struct Database {
    opened: OpenStore,
    _database: TestDatabase,
}

impl Database {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await;
        Self {
            opened: database.open().await,
            _database: database,
        }
    }

    /// Another store on it is another node.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self.opened.clone() {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }
}
