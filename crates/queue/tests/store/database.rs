//! A database of the test's own, and what a test does to it past the store.

use std::{ops::Deref, sync::Arc, time::Duration};

use tokio_postgres::Client;
use wakeline_queue::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore},
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestClock, TestDatabase, WriteBlock};

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

    /// From here on SQLite's clock is the real one, as PostgreSQL's always is.
    pub(crate) fn let_the_clock_run(&self) {
        self.clock.let_run();
    }

    /// Lets `time` pass for cursors without waiting for it. PostgreSQL's clock cannot be set, so
    /// what is due comes nearer instead.
    pub(crate) async fn pass(&self, time: Duration) {
        match self.is_postgres() {
            true => {
                let cursors = ["queue_cursor SET ready_at = ready_at"];
                self.shift(time, &cursors).await;
            }
            false => self.clock.advance(time),
        }
    }

    /// The same for messages too. On PostgreSQL they are then of an earlier time, and their ids,
    /// which say that time, are others.
    pub(crate) async fn pass_for_all(&self, time: Duration) {
        self.pass(time).await;
        if self.is_postgres() {
            let times = [
                "queue_segment SET created_at = created_at",
                "queue_partition SET last_at = last_at",
                "queue_group SET begin_at = begin_at",
                "queue_subscription SET begin_at = begin_at",
            ];
            self.shift(time, &times).await;
        }
    }

    async fn shift(&self, time: Duration, columns: &[&str]) {
        let micros = time.as_micros();
        for column in columns {
            self.execute(&format!(
                "UPDATE {column} - {micros} * interval '1 microsecond'"
            ))
            .await;
        }
    }

    /// Microseconds since 1970, by the store's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self.is_postgres() {
            true => {
                let now = "extract(epoch FROM clock_timestamp()) * 1000000";
                self.number(&format!("SELECT CAST({now} AS bigint)")).await
            }
            false => self.clock.now(),
        }
    }

    pub(crate) async fn set_lease(&self, queue: &str, time: Duration) {
        let milliseconds = time.as_millis();
        self.execute(&format!(
            "UPDATE queue SET lease_ms = {milliseconds} WHERE name = '{queue}'"
        ))
        .await;
    }

    pub(crate) async fn block_all_writes(&self) -> WriteBlock {
        let tables = "queue, queue_group, queue_partition, queue_cursor, queue_mode";
        self.block_writes(tables).await
    }

    /// On PostgreSQL no pop gets on until what is returned is dropped, so that those that follow
    /// gather and run as batches, two nodes' at once.
    pub(crate) async fn hold_pops_up(&self) -> Option<Client> {
        if !self.is_postgres() {
            return None;
        }
        let client = self.session().await;
        let lock = "BEGIN; LOCK TABLE wakeline.queue_group IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(lock).await.unwrap();
        Some(client)
    }

    /// To be asked when the stores are gone.
    pub(crate) async fn saw_no_deadlock(&self) {
        if self.is_postgres() {
            self.all_sessions_ended().await;
            let deadlocks =
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            assert_eq!(self.number(deadlocks).await, 0, "deadlocks");
        }
    }

    /// How many messages there are in all segments.
    pub(crate) async fn messages(&self) -> i64 {
        let sql = "SELECT CAST(coalesce(sum(last - first + 1), 0) AS bigint) FROM queue_segment";
        self.number(sql).await
    }
}
