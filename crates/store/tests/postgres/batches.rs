//! Who shares a statement, and how many may wait for one.

use futures_util::{FutureExt, future::join_all};
use wakeline_store::{
    Error, Postgres,
    postgres::{Batcher, Options},
};
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{Insert, Lock, THING, commits, names, submit, thing};

#[tokio::test]
async fn what_arrives_while_a_batch_is_under_way_shares_the_next() {
    let database = PostgresDatabase::new(&[THING]).await;
    let postgres = database.open(&[THING]).await;
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let first = submit(&batcher, thing("first", 0));
    lock.stops(1).await;
    let arriving: Vec<_> = (1..=50)
        .map(|number| submit(&batcher, thing(format!("{number}"), number)))
        .collect();

    lock.release().await;

    assert_eq!(first.await, Ok(0));
    let expected: Vec<_> = (1..=50).map(Ok).collect();
    assert_eq!(join_all(arriving).await, expected);
    assert_eq!(commits(&postgres).await, 2);
    assert_eq!(names(&postgres).await.len(), 51);
}

#[tokio::test]
async fn a_batch_takes_no_more_than_its_weight_allows() {
    let database = PostgresDatabase::new(&[THING]).await;
    let options = Options {
        max_batch: 10,
        ..Options::default()
    };
    let postgres = Postgres::open(&database.url(), &options, &[THING])
        .await
        .unwrap();
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let first = submit(&batcher, thing("first", 0));
    lock.stops(1).await;
    let arriving: Vec<_> = (0..20)
        .map(|number| {
            let mut heavy = thing(format!("{number}"), number);
            heavy.weight = 5;
            submit(&batcher, heavy)
        })
        .collect();

    lock.release().await;

    first.await.unwrap();
    for result in join_all(arriving).await {
        result.unwrap();
    }
    assert_eq!(commits(&postgres).await, 1 + 10);
}

#[tokio::test]
async fn as_many_batches_as_workers_are_under_way_at_once() {
    let database = PostgresDatabase::new(&[THING]).await;
    let postgres = database.open(&[THING]).await;
    let batcher = Batcher::start(&postgres, Insert, 3);
    let lock = Lock::take(&postgres).await;
    let mut pending = Vec::new();
    for (name, stopped) in [("a", 1), ("b", 2), ("c", 3)] {
        pending.push(submit(&batcher, thing(name, 0)));
        lock.stops(stopped).await;
    }

    lock.release().await;

    assert_eq!(join_all(pending).await, [Ok(0), Ok(0), Ok(0)]);
    assert_eq!(commits(&postgres).await, 3);
}

#[tokio::test]
async fn an_operation_whose_caller_has_gone_still_happens() {
    let database = PostgresDatabase::new(&[THING]).await;
    let postgres = database.open(&[THING]).await;
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let first = submit(&batcher, thing("first", 0));
    lock.stops(1).await;
    drop(first);
    drop(submit(&batcher, thing("nobody's", 0)));
    let last = submit(&batcher, thing("last", 0));

    lock.release().await;
    last.await.unwrap();

    assert_eq!(names(&postgres).await, ["first", "last", "nobody's"]);
}

#[tokio::test]
async fn more_than_may_wait_is_refused_at_once_and_nothing_of_it_is_done() {
    let database = PostgresDatabase::new(&[THING]).await;
    let options = Options {
        max_pending: 3,
        ..Options::default()
    };
    let postgres = Postgres::open(&database.url(), &options, &[THING])
        .await
        .unwrap();
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let mut pending = vec![submit(&batcher, thing("first", 0))];
    lock.stops(1).await;
    pending.extend(["a", "b", "c"].map(|name| submit(&batcher, thing(name, 0))));

    let refused = batcher.submit(thing("too many", 0)).now_or_never();
    assert_eq!(refused, Some(Err(Error::Overloaded)));

    lock.release().await;
    for result in join_all(pending).await {
        result.unwrap();
    }
    assert_eq!(names(&postgres).await, ["a", "b", "c", "first"]);
}
