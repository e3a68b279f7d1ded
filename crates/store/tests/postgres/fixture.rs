//! A small table, a batch that fills it, and a lock that stops it.

use std::{pin::Pin, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, types::Type};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batch, Batcher, RunError, Weigh},
};

/// Nothing here takes this long; what does, hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(60);
const STOPPED: &str = "FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) const THING: Migrations = Migrations {
    door: "thing",
    steps: &["CREATE TABLE wakeline.thing (
        name text PRIMARY KEY, amount bigint NOT NULL CHECK (amount >= 0))"],
};

#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) name: String,
    pub(crate) amount: i64,
    pub(crate) weight: usize,
}

pub(crate) fn thing(name: impl Into<String>, amount: i64) -> Thing {
    Thing {
        name: name.into(),
        amount,
        weight: 1,
    }
}

impl Weigh for Thing {
    fn weight(&self) -> usize {
        self.weight
    }
}

/// Gives each its amount back.
pub(crate) struct Insert;

impl Batch for Insert {
    type Operation = Thing;
    type Output = i64;

    const KIND: &'static str = "thing";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Thing],
    ) -> BoxFuture<'a, Result<Vec<i64>, RunError>> {
        let names: Vec<&str> = operations.iter().map(|thing| &*thing.name).collect();
        let amounts: Vec<i64> = operations.iter().map(|thing| thing.amount).collect();
        Box::pin(async move {
            let rows = client
                .query_typed(
                    "INSERT INTO wakeline.thing SELECT * FROM unnest($1, $2) RETURNING amount",
                    &[(&names, Type::TEXT_ARRAY), (&amounts, Type::INT8_ARRAY)],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

/// In the batcher's line when this returns: an operation is submitted by the first poll.
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

/// Keeps every batch from its end until it is released.
pub(crate) struct Lock {
    holding: Client,
    /// Outside of the transaction, in which the list of sessions would never change.
    looking: Client,
}

impl Lock {
    pub(crate) async fn take(postgres: &Postgres) -> Self {
        let holding = postgres.connector().connect().await.unwrap();
        let looking = postgres.connector().connect().await.unwrap();
        let lock = "BEGIN; LOCK TABLE wakeline.thing IN EXCLUSIVE MODE";
        holding.batch_execute(lock).await.unwrap();
        Self { holding, looking }
    }

    /// Waits until `count` sessions of this database stand before a lock.
    pub(crate) async fn stops(&self, count: i64) {
        wait_for_stopped(&self.looking, count).await;
    }

    pub(crate) async fn end_stopped_sessions(&self) {
        let end = format!("SELECT pg_terminate_backend(pid) {STOPPED}");
        self.looking.batch_execute(&end).await.unwrap();
    }

    pub(crate) async fn release(self) {
        self.holding.batch_execute("COMMIT").await.unwrap();
    }
}

pub(crate) async fn wait_for_stopped(client: &Client, count: i64) {
    let sql = format!("SELECT count(*) {STOPPED}");
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
pub(crate) async fn ask(postgres: &Postgres, sql: &str) -> i64 {
    postgres.query("ask", sql, &[]).await.unwrap()[0].get(0)
}

pub(crate) async fn names(postgres: &Postgres) -> Vec<String> {
    let sql = "SELECT name FROM wakeline.thing ORDER BY name COLLATE \"C\"";
    let rows = postgres.query("names", sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// The transactions that made the rows: each row carries the id of its own.
pub(crate) async fn commits(postgres: &Postgres) -> i64 {
    ask(
        postgres,
        "SELECT count(DISTINCT xmin::text) FROM wakeline.thing",
    )
    .await
}
