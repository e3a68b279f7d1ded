//! A small table, a batch that inserts into it, and a lock that blocks it.

use std::{pin::Pin, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, types::Type};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batch, Batcher, Options, RunError, Weigh},
};
use wakeline_testkit::PostgresDatabase;

/// Nothing here takes this long, unless it hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);
const BLOCKED: &str = "FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) const ITEMS: Migrations = Migrations {
    door: "item",
    steps: &["CREATE TABLE wakeline.item (
        name text PRIMARY KEY, amount bigint NOT NULL CHECK (amount >= 0))"],
};

#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) amount: i64,
    pub(crate) weight: usize,
}

pub(crate) fn item(name: impl Into<String>, amount: i64) -> Item {
    Item {
        name: name.into(),
        amount,
        weight: 1,
    }
}

impl Weigh for Item {
    fn weight(&self) -> usize {
        self.weight
    }
}

/// Returns the amount of each item.
pub(crate) struct Insert;

impl Batch for Insert {
    type Operation = Item;
    type Output = i64;

    const KIND: &'static str = "item";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Item],
    ) -> BoxFuture<'a, Result<Vec<i64>, RunError>> {
        let names: Vec<&str> = operations.iter().map(|item| &*item.name).collect();
        let amounts: Vec<i64> = operations.iter().map(|item| item.amount).collect();
        Box::pin(async move {
            let rows = client
                .query_typed(
                    "INSERT INTO wakeline.item SELECT * FROM unnest($1, $2) RETURNING amount",
                    &[(&names, Type::TEXT_ARRAY), (&amounts, Type::INT8_ARRAY)],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// Submits an operation by polling it once.
pub(crate) fn submit<B: Batch>(
    batcher: &Batcher<B>,
    operation: B::Operation,
) -> Pending<B::Output> {
    let batcher = batcher.clone();
    let mut pending: Pending<B::Output> = Box::pin(async move { batcher.submit(operation).await });
    let answered = pending.as_mut().now_or_never();
    assert!(
        answered.is_none(),
        "an operation was answered by its first poll"
    );
    pending
}

/// Blocks every batch until it is released.
pub(crate) struct Lock {
    holding: Client,
    /// Outside of the transaction, which would never see the list of sessions change.
    looking: Client,
}

impl Lock {
    pub(crate) async fn take(postgres: &Postgres) -> Self {
        let holding = postgres.connector().connect().await.unwrap();
        let looking = postgres.connector().connect().await.unwrap();
        let lock = "BEGIN; LOCK TABLE wakeline.item IN EXCLUSIVE MODE";
        holding.batch_execute(lock).await.unwrap();
        Self { holding, looking }
    }

    /// Waits until `count` sessions of this database wait for a lock.
    pub(crate) async fn blocks(&self, count: i64) {
        wait_for_blocked(&self.looking, count).await;
    }

    pub(crate) async fn end_blocked_sessions(&self) {
        let end = format!("SELECT pg_terminate_backend(pid) {BLOCKED}");
        self.looking.batch_execute(&end).await.unwrap();
    }

    pub(crate) async fn release(self) {
        self.holding.batch_execute("COMMIT").await.unwrap();
    }
}

pub(crate) async fn wait_for_blocked(client: &Client, count: i64) {
    let sql = format!("SELECT count(*) {BLOCKED}");
    eventually("sessions wait for a lock", async || {
        let rows = client.query_typed(&sql, &[]).await.unwrap();
        rows[0].get::<_, i64>(0) == count
    })
    .await;
}

/// A bounded wait for a condition.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let waiting = async {
        while !condition().await {
            sleep(LOOK_EVERY).await;
        }
    };
    assert!(timeout(HANGS, waiting).await.is_ok(), "never: {what}");
}

/// A single number from the database.
pub(crate) async fn number(postgres: &Postgres, sql: &str) -> i64 {
    postgres.query("number", sql, &[]).await.unwrap()[0].get(0)
}

pub(crate) async fn names(postgres: &Postgres) -> Vec<String> {
    let sql = "SELECT name FROM wakeline.item ORDER BY name COLLATE \"C\"";
    let rows = postgres.query("names", sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The transactions that made the rows: each row carries the id of its own.
pub(crate) async fn commits(postgres: &Postgres) -> i64 {
    number(
        postgres,
        "SELECT count(DISTINCT xmin::text) FROM wakeline.item",
    )
    .await
}

/// A batcher with one worker, which is blocked in a batch of the item `first`.
pub(crate) struct BlockedBatcher {
    pub(crate) postgres: Postgres,
    pub(crate) batcher: Batcher<Insert>,
    pub(crate) lock: Lock,
    pub(crate) first: Pending<i64>,
    _database: PostgresDatabase,
}

impl BlockedBatcher {
    pub(crate) async fn with(options: &Options) -> Self {
        let database = PostgresDatabase::new(&[ITEMS]).await;
        let postgres = Postgres::open(&database.url(), options, &[ITEMS]).await;
        let postgres = postgres.expect("a fresh database can be opened");
        let batcher = Batcher::start(&postgres, Insert, 1);
        let lock = Lock::take(&postgres).await;
        let first = submit(&batcher, item("first", 0));
        lock.blocks(1).await;
        Self {
            postgres,
            batcher,
            lock,
            first,
            _database: database,
        }
    }
}
