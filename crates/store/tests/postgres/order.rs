//! Statements that are sent in one go are run in the order in which they were begun. Batches of many
//! callers rely on it: nothing is read before the locks are had, and the commit comes last.

use tokio_postgres::{Client, types::Type};
use wakeline_store::postgres::{pipelined, send};
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{ITEMS, commits, names};

const ROUNDS: usize = 50;
/// Larger than what a connection sends at once.
const LONG: usize = 1_000_000;

/// Its amount is the number of those before it.
const ADD: &str = "INSERT INTO wakeline.item SELECT $1, count(*) FROM wakeline.item
    WHERE $2 <> ''";

async fn add(client: &Client, name: &str, length: usize) -> Result<(), tokio_postgres::Error> {
    let long = "x".repeat(length);
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
        [(&name, Type::TEXT), (&long, Type::TEXT)];
    client.query_typed(ADD, &parameters).await.map(drop)
}

const AMOUNTS: &str = "SELECT string_agg(name, ' ' ORDER BY amount) FROM wakeline.item";

async fn in_order(client: &Client) -> String {
    let row = client.query_one(AMOUNTS, &[]).await.unwrap();
    row.get(0)
}

/// As the queue's steps and claims are sent.
#[tokio::test]
async fn pipelined_statements_run_as_they_are_written() {
    let database = PostgresDatabase::new(&[ITEMS]).await;
    let postgres = database.open(&[ITEMS]).await;
    let client = postgres.connector().connect().await.unwrap();
    for _ in 0..ROUNDS {
        let answers = pipelined!(
            client.batch_execute("BEGIN; DELETE FROM wakeline.item"),
            add(&client, "a", LONG),
            async { Ok(()) },
            add(&client, "b", 1),
            client
                .batch_execute("INSERT INTO wakeline.item SELECT 'c', count(*) FROM wakeline.item"),
            add(&client, "d", LONG),
            client.batch_execute("COMMIT"),
        );
        answers.unwrap();
        assert_eq!(in_order(&client).await, "a b c d");
        // Committed: another connection sees it.
        assert_eq!(names(&postgres).await, ["a", "b", "c", "d"]);
        assert_eq!(commits(&postgres).await, 1);
    }
}

/// As the jobs' calls are sent: the answers are read in any order.
#[tokio::test]
async fn sent_statements_run_in_the_order_in_which_they_were_sent() {
    let database = PostgresDatabase::new(&[ITEMS]).await;
    let postgres = database.open(&[ITEMS]).await;
    let client = postgres.connector().connect().await.unwrap();
    for _ in 0..ROUNDS {
        let mut sent = vec![
            send(client.batch_execute("BEGIN; DELETE FROM wakeline.item")).await,
            send(add(&client, "a", LONG)).await,
            send(add(&client, "b", 1)).await,
            send(add(&client, "c", LONG)).await,
            send(client.batch_execute("COMMIT")).await,
        ];
        while let Some(last) = sent.pop() {
            last.await.unwrap();
        }
        assert_eq!(in_order(&client).await, "a b c");
        assert_eq!(names(&postgres).await, ["a", "b", "c"]);
    }
}
