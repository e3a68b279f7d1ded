//! Batches that lose against another transaction.

use futures_util::future::BoxFuture;
use tokio_postgres::{Client, types::Type};
use wakeline_store::{
    Error, Migrations,
    postgres::{Batch, Batcher, RunError, Weigh},
};
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{ITEMS, number, submit, wait_for_blocked};

/// A sequence counts every try, for it is not rolled back.
const RACES: Migrations = Migrations {
    door: "races",
    steps: &[
        "CREATE SEQUENCE wakeline.try;
         CREATE FUNCTION wakeline.lose(times bigint) RETURNS bigint LANGUAGE plpgsql AS $$
         DECLARE number bigint := nextval('wakeline.try');
         BEGIN
             IF number <= times THEN
                 RAISE EXCEPTION 'lost' USING ERRCODE = 'serialization_failure';
             END IF;
             RETURN number;
         END $$",
        "INSERT INTO wakeline.item VALUES ('a', 0), ('b', 0);
         CREATE FUNCTION wakeline.take_a_then_b(gate bigint) RETURNS bigint LANGUAGE plpgsql
         SET deadlock_timeout = '10ms' AS $$
         DECLARE number bigint := nextval('wakeline.try');
         BEGIN
             UPDATE wakeline.item SET amount = amount + 1 WHERE name = 'a';
             PERFORM pg_advisory_xact_lock_shared(gate);
             UPDATE wakeline.item SET amount = amount + 1 WHERE name = 'b';
             RETURN number;
         END $$",
    ],
};
const TRIES: &str = "SELECT last_value FROM wakeline.try";

/// Calls a function once per operation.
struct Call(&'static str);

#[derive(Clone, Copy)]
struct Argument(i64);

impl Weigh for Argument {}

impl Batch for Call {
    type Operation = Argument;
    type Output = i64;

    const KIND: &'static str = "call";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Argument],
    ) -> BoxFuture<'a, Result<Vec<i64>, RunError>> {
        let arguments: Vec<i64> = operations.iter().map(|argument| argument.0).collect();
        let sql = format!("SELECT wakeline.{}(given) FROM unnest($1) given", self.0);
        Box::pin(async move {
            let rows = client
                .query_typed(&sql, &[(&arguments, Type::INT8_ARRAY)])
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

#[tokio::test]
async fn a_batch_that_loses_a_serialization_race_is_repeated() {
    let database = PostgresDatabase::new(&[ITEMS, RACES]).await;
    let postgres = database.open(&[ITEMS, RACES]).await;
    let batcher = Batcher::start(&postgres, Call("lose"), 1);
    assert_eq!(batcher.submit(Argument(2)).await, Ok(3));
}

#[tokio::test]
async fn a_batch_that_always_loses_is_refused_after_several_attempts() {
    let database = PostgresDatabase::new(&[ITEMS, RACES]).await;
    let postgres = database.open(&[ITEMS, RACES]).await;
    let batcher = Batcher::start(&postgres, Call("lose"), 1);
    let error = batcher.submit(Argument(i64::MAX)).await.unwrap_err();
    assert!(
        matches!(&error, Error::Failed(reason) if reason.starts_with("40001")),
        "{error:?}"
    );
    assert_eq!(number(&postgres, TRIES).await, 5);
}

#[tokio::test]
async fn a_batch_that_postgres_ends_for_a_deadlock_is_repeated() {
    const GATE: i64 = 1;
    let database = PostgresDatabase::new(&[ITEMS, RACES]).await;
    let postgres = database.open(&[ITEMS, RACES]).await;
    let batcher = Batcher::start(&postgres, Call("take_a_then_b"), 1);
    let gate = postgres.connector().connect().await.unwrap();
    gate.batch_execute(&format!("SELECT pg_advisory_lock({GATE})"))
        .await
        .unwrap();
    let rival = postgres.connector().connect().await.unwrap();
    // So patient that it is the batch that has to give way.
    rival
        .batch_execute(
            "BEGIN; SET LOCAL deadlock_timeout = '1h';
             UPDATE wakeline.item SET amount = amount + 10 WHERE name = 'b'",
        )
        .await
        .unwrap();

    let pending = submit(&batcher, Argument(GATE));
    wait_for_blocked(&gate, 1).await;
    let rivalling = tokio::spawn(async move {
        let rest = "UPDATE wakeline.item SET amount = amount + 10 WHERE name = 'a'; COMMIT";
        rival.batch_execute(rest).await
    });
    wait_for_blocked(&gate, 2).await;
    gate.batch_execute(&format!("SELECT pg_advisory_unlock({GATE})"))
        .await
        .unwrap();

    rivalling.await.unwrap().unwrap();
    let tries = pending.await.unwrap();
    assert!(tries >= 2, "nothing was lost");
    let elevens = "SELECT count(*) FROM wakeline.item WHERE amount = 11";
    assert_eq!(number(&postgres, elevens).await, 2);
}
