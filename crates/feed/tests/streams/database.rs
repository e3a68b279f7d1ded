//! A database of the test's own.

use std::{ops::Deref, sync::Arc};

use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestDatabase, WriteBlock};

pub(crate) struct Database(TestDatabase);

impl Deref for Database {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.0
    }
}

impl Database {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        Self(TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await)
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(DatabaseKind::Postgres).await
    }

    /// On a PostgreSQL server of the test's own.
    pub(crate) async fn on_server(server: &str) -> Self {
        Self(TestDatabase::on_server(server, postgres::MIGRATIONS).await)
    }

    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.0.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }

    /// Facts can be read but not saved until this is dropped.
    pub(crate) async fn block_saves(&self) -> WriteBlock {
        self.block_writes("feed_fact").await
    }
}
