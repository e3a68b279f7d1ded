//! A store in a database of the test's own, and what a test does to the database past the store.

use std::{ops::Deref, sync::Arc, time::Duration};

use tokio_postgres::Client;
use wakeline_bus::Bus;
use wakeline_queue::{
    Limits, Queue,
    store::{
        Store,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore},
    },
};
use wakeline_testkit::{DatabaseKind, OpenStore, TestClock, TestDatabase, WriteBlock};

use crate::test_door::engine;

/// The store of one node.
pub(crate) struct TestStore {
    pub(crate) node: Arc<dyn Store>,
    pub(crate) database: TestDatabase,
    clock: TestClock,
}

impl Deref for TestStore {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.node
    }
}

impl TestStore {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await;
        let clock = TestClock::stopped();
        Self {
            node: open(&database, &clock).await,
            database,
            clock,
        }
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(DatabaseKind::Postgres).await
    }

    /// A store with connections of its own.
    pub(crate) async fn another_node(&self) -> Arc<dyn Store> {
        open(&self.database, &self.clock).await
    }

    /// The door of a node on this store. From here on SQLite's clock is the real one.
    pub(crate) fn queue(&self) -> Arc<Queue> {
        self.queue_with(Limits::default())
    }

    pub(crate) fn queue_with(&self, limits: Limits) -> Arc<Queue> {
        self.let_the_clock_run();
        let engine = engine();
        Queue::new(
            self.node.clone(),
            engine.clone(),
            Bus::local(engine),
            limits,
            None,
        )
    }

    pub(crate) async fn nodes(&self) -> [Arc<dyn Store>; 2] {
        [self.node.clone(), self.another_node().await]
    }

    /// From here on SQLite's clock is the real one, as PostgreSQL's always is.
    pub(crate) fn let_the_clock_run(&self) {
        self.clock.let_run();
    }

    /// Lets `time` pass for cursors without waiting for it. PostgreSQL's clock cannot be set, so
    /// what is due comes nearer instead.
    pub(crate) async fn pass(&self, time: Duration) {
        match self.database.is_postgres() {
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
        if self.database.is_postgres() {
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
            self.database
                .execute(&format!(
                    "UPDATE {column} - {micros} * interval '1 microsecond'"
                ))
                .await;
        }
    }

    /// Microseconds since 1970, by the store's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self.database.is_postgres() {
            true => {
                let now = "extract(epoch FROM clock_timestamp()) * 1000000";
                self.database
                    .number(&format!("SELECT CAST({now} AS bigint)"))
                    .await
            }
            false => self.clock.now(),
        }
    }

    pub(crate) async fn set_lease(&self, queue: &str, time: Duration) {
        let milliseconds = time.as_millis();
        self.database
            .execute(&format!(
                "UPDATE queue SET lease_ms = {milliseconds} WHERE name = '{queue}'"
            ))
            .await;
    }

    pub(crate) async fn block_all_writes(&self) -> WriteBlock {
        let tables = "queue, queue_group, queue_partition, queue_cursor, queue_mode";
        self.database.block_writes(tables).await
    }

    /// On PostgreSQL every pop waits until the returned guard is dropped, so that the pops that
    /// follow gather and run as batches, two nodes' at once.
    pub(crate) async fn hold_pops_up(&self) -> Option<Client> {
        if !self.database.is_postgres() {
            return None;
        }
        let client = self.database.session().await;
        let lock = "BEGIN; LOCK TABLE wakeline.queue_group IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(lock).await.unwrap();
        Some(client)
    }

    /// To be asked when the other nodes are gone.
    pub(crate) async fn saw_no_deadlock(self) {
        let Self { node, database, .. } = self;
        drop(node);
        if database.is_postgres() {
            database.all_sessions_ended().await;
            let deadlocks =
                "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
            assert_eq!(database.number(deadlocks).await, 0, "deadlocks");
        }
    }

    /// How many messages there are in all segments.
    pub(crate) async fn messages(&self) -> i64 {
        let sql = "SELECT CAST(coalesce(sum(last - first + 1), 0) AS bigint) FROM queue_segment";
        self.database.number(sql).await
    }
}

/// The seed of a run that is to be repeated.
pub(crate) fn seed() -> Option<u64> {
    let seed = std::env::var("WAKELINE_SEED").ok()?;
    Some(seed.parse().expect("a seed is a number"))
}

async fn open(database: &TestDatabase, clock: &TestClock) -> Arc<dyn Store> {
    match database.open().await {
        OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, clock.reader())),
        OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
    }
}
