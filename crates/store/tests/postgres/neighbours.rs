//! One bad operation among good ones in the same statement, and batches that are themselves bad.

use futures_util::{FutureExt, future::BoxFuture};
use tokio_postgres::{Client, types::Type};
use wakeline_store::{
    Error, Postgres,
    postgres::{Batch, Batcher, Options, RunError},
};
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{BlockedBatcher, ITEMS, Insert, Item, Lock, item, names, number, submit};

#[tokio::test]
async fn an_operation_that_violates_a_check_fails_alone() {
    among_neighbours(item("bad", -1), "23514").await;
}

#[tokio::test]
async fn an_operation_that_clashes_with_a_neighbour_fails_alone() {
    among_neighbours(item("left", 2), "23505").await;
}

#[tokio::test]
async fn an_operation_with_a_text_that_postgres_cannot_store_fails_alone() {
    among_neighbours(item("nul\0", 2), "22021").await;
}

/// `bad` is refused with `code` though it came in one statement with good ones, which must stand.
async fn among_neighbours(bad: Item, code: &str) {
    let blocked = BlockedBatcher::with(&Options::default()).await;
    let left = submit(&blocked.batcher, item("left", 1));
    let bad = submit(&blocked.batcher, bad);
    let right = submit(&blocked.batcher, item("right", 3));

    blocked.lock.release().await;

    assert_eq!(blocked.first.await, Ok(0));
    assert_eq!(left.await, Ok(1));
    assert_eq!(right.await, Ok(3));
    let refused = bad.await;
    assert!(
        matches!(&refused, Err(Error::Failed(reason)) if reason.starts_with(code)),
        "{refused:?}"
    );
    assert_eq!(names(&blocked.postgres).await, ["first", "left", "right"]);
}

#[tokio::test]
async fn a_statement_that_runs_out_of_time_is_unavailable_and_not_tried_one_by_one() {
    let database = PostgresDatabase::new(&[ITEMS]).await;
    let postgres = database.open(&[ITEMS]).await;
    let short_options = Options {
        statement_timeout: std::time::Duration::from_millis(500),
        ..Options::default()
    };
    let short_options = Postgres::open(&database.url(), &short_options, &[ITEMS])
        .await
        .unwrap();
    let batcher = Batcher::start(&short_options, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let pending = ["a", "b", "c"].map(|name| submit(&batcher, item(name, 0)));

    for operation in pending {
        let error = operation.await.unwrap_err();
        assert!(
            matches!(&error, Error::Unavailable(reason) if reason.starts_with("57014")),
            "{error:?}"
        );
    }
    lock.release().await;

    assert_eq!(batcher.submit(item("d", 0)).await, Ok(0));
    assert_eq!(names(&postgres).await, ["d"]);
}

/// The failure of a batch after its statement has been committed.
#[derive(Clone, Copy)]
enum Defect {
    TooFew,
    Senseless,
    Panics,
}

struct InsertThen(Defect);

impl Batch for InsertThen {
    type Operation = Item;
    type Output = ();

    const KIND: &'static str = "wrong";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Item],
    ) -> BoxFuture<'a, Result<Vec<()>, RunError>> {
        let names: Vec<&str> = operations.iter().map(|item| &*item.name).collect();
        let insert = "INSERT INTO wakeline.trace SELECT * FROM unnest($1)";
        async move {
            client
                .query_typed(insert, &[(&names, Type::TEXT_ARRAY)])
                .await?;
            match self.0 {
                Defect::TooFew => Ok(vec![()]),
                Defect::Senseless => Err(RunError::Answer("senseless".into())),
                Defect::Panics => panic!("meant"),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn an_operation_that_may_have_been_committed_is_never_repeated() {
    for wrong in [Defect::TooFew, Defect::Senseless, Defect::Panics] {
        let database = PostgresDatabase::new(&[ITEMS]).await;
        let postgres = database.open(&[ITEMS]).await;
        let table = "CREATE TABLE wakeline.trace (name text)";
        postgres.query("table", table, &[]).await.unwrap();
        let batcher = Batcher::start(&postgres, InsertThen(wrong), 1);
        // Twice: the worker must outlive the first.
        for _ in 0..2 {
            let pending = ["a", "b"].map(|name| submit(&batcher, item(name, 0)));
            for operation in pending {
                let error = operation.await.unwrap_err();
                assert!(matches!(error, Error::OutcomeUnknown(_)), "{error:?}");
            }
        }
        assert_eq!(
            number(&postgres, "SELECT count(*) FROM wakeline.trace").await,
            4
        );
    }
}
