//! A database of the test's own, and the steps of tests that bypass the store.

use std::{ops::Deref, sync::Arc};

use uuid::Uuid;
use wakeline_jobs::store::{
    Users,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_testkit::{DatabaseKind, Fixture, OpenStore, TestDatabase};

#[derive(Debug)]
pub(crate) struct Database(TestDatabase);

impl Deref for Database {
    type Target = TestDatabase;

    fn deref(&self) -> &TestDatabase {
        &self.0
    }
}

impl Fixture for Database {
    async fn open(kind: DatabaseKind) -> Self {
        Self(TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await)
    }
}

impl Database {
    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Users> {
        match self.0.open().await {
            OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
            OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
        }
    }

    pub(crate) async fn add_worker(&self, user: Uuid) -> Uuid {
        let worker = Uuid::new_v4();
        let row = format!("{}, {}, 0, 0", self.uuid(worker), self.uuid(user));
        let columns = "id, user_id, beat_at, created_at";
        let sql = format!("INSERT INTO jobs_worker ({columns}) VALUES ({row})");
        self.execute(&sql).await;
        worker
    }

    pub(crate) async fn remove_worker(&self, worker: Uuid) {
        let worker = self.uuid(worker);
        self.execute(&format!("DELETE FROM jobs_worker WHERE id = {worker}"))
            .await;
    }
}
