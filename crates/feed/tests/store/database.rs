//! A database of the test's own, and what a test does to it past the store.

use std::{ops::Deref, sync::Arc, time::Duration};

use wakeline_feed::store::{
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestClock, TestDatabase};

/// Queries have a suite of their own.
pub(crate) use wakeline_feed::store::Store;

pub(crate) struct Database {
    database: TestDatabase,
    clock: TestClock,
}

impl Deref for Database {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.database
    }
}

impl Database {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        Self {
            database: TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await,
            clock: TestClock::stopped(),
        }
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(DatabaseKind::Postgres).await
    }

    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.database.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, self.clock.reader())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }

    /// Lets time pass for definitions without waiting for it. PostgreSQL's clock cannot be set, so
    /// what there is becomes older instead.
    pub(crate) async fn pass(&self, micros: i64) {
        match self.is_postgres() {
            true => {
                let sql = format!("UPDATE feed_definition SET used_at = used_at - {micros}");
                self.execute(&sql).await;
            }
            false => self
                .clock
                .advance(Duration::from_micros(micros.unsigned_abs())),
        }
    }

    /// The time by the database's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self.is_postgres() {
            true => self.number("SELECT feed_now()").await,
            false => self.clock.now(),
        }
    }
}
