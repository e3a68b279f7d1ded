//! A database of the test's own, and the steps of tests that bypass the store.

use std::{ops::Deref, sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_jobs::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestClock, TestDatabase};

/// The columns by which the sweep measures time.
const TIMES: [&str; 4] = [
    "jobs_worker SET beat_at = beat_at",
    "jobs_task SET completed_at = completed_at",
    "jobs_task SET started_at = started_at",
    "jobs_task SET created_at = created_at",
];

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
            clock: TestClock::stepping(),
        }
    }

    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self.database.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, self.clock.reader())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }

    /// Lets `time` pass without waiting for it. PostgreSQL's clock cannot be set, so the rows
    /// become older instead.
    pub(crate) async fn pass(&self, time: Duration) {
        if !self.is_postgres() {
            return self.clock.advance(time);
        }
        let micros = time.as_micros();
        for column in TIMES {
            self.execute(&format!("UPDATE {column} - {micros}")).await;
        }
    }

    /// A user of this number: workers need one.
    pub(crate) async fn user(&self, number: u128) -> Uuid {
        let id = Uuid::from_u128(number);
        let row = format!("{}, '{number}@example.com', 0", self.uuid(id));
        let sql = format!("INSERT INTO jobs_user (id, email, created_at) VALUES ({row})");
        self.execute(&sql).await;
        id
    }
}
