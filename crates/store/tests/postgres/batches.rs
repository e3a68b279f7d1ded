//! Which operations share a statement, and how many can wait for one.

use futures_util::{FutureExt, future::join_all};
use wakeline_store::{
    Error,
    postgres::{Batcher, Options},
};
use wakeline_testkit::PostgresDatabase;

use crate::fixture::{BlockedBatcher, ITEMS, Insert, Lock, commits, item, names, submit};

#[tokio::test]
async fn operations_that_arrive_during_a_batch_share_the_next_one() {
    let blocked = BlockedBatcher::with(&Options::default()).await;
    let arriving: Vec<_> = (1..=50)
        .map(|number| submit(&blocked.batcher, item(format!("{number}"), number)))
        .collect();

    blocked.lock.release().await;

    assert_eq!(blocked.first.await, Ok(0));
    let expected: Vec<_> = (1..=50).map(Ok).collect();
    assert_eq!(join_all(arriving).await, expected);
    assert_eq!(commits(&blocked.postgres).await, 2);
    assert_eq!(names(&blocked.postgres).await.len(), 51);
}

#[tokio::test]
async fn a_batch_takes_no_more_than_its_weight_allows() {
    let options = Options {
        max_batch: 10,
        ..Options::default()
    };
    let blocked = BlockedBatcher::with(&options).await;
    let arriving: Vec<_> = (0..20)
        .map(|number| {
            let mut heavy = item(format!("{number}"), number);
            heavy.weight = 5;
            submit(&blocked.batcher, heavy)
        })
        .collect();

    blocked.lock.release().await;

    blocked.first.await.unwrap();
    for result in join_all(arriving).await {
        result.unwrap();
    }
    assert_eq!(commits(&blocked.postgres).await, 1 + 10);
}

#[tokio::test]
async fn as_many_batches_as_workers_are_under_way_at_once() {
    let database = PostgresDatabase::new(&[ITEMS]).await;
    let postgres = database.open(&[ITEMS]).await;
    let batcher = Batcher::start(&postgres, Insert, 3);
    let lock = Lock::take(&postgres).await;
    let mut pending = Vec::new();
    for (name, stopped) in [("a", 1), ("b", 2), ("c", 3)] {
        pending.push(submit(&batcher, item(name, 0)));
        lock.blocks(stopped).await;
    }

    lock.release().await;

    assert_eq!(join_all(pending).await, [Ok(0), Ok(0), Ok(0)]);
    assert_eq!(commits(&postgres).await, 3);
}

#[tokio::test]
async fn an_operation_whose_caller_has_gone_is_committed() {
    let blocked = BlockedBatcher::with(&Options::default()).await;
    drop(blocked.first);
    drop(submit(&blocked.batcher, item("nobody's", 0)));
    let last = submit(&blocked.batcher, item("last", 0));

    blocked.lock.release().await;
    last.await.unwrap();

    assert_eq!(
        names(&blocked.postgres).await,
        ["first", "last", "nobody's"]
    );
}

#[tokio::test]
async fn operations_past_the_limit_are_refused_at_once_and_not_run() {
    let options = Options {
        max_pending: 3,
        ..Options::default()
    };
    let blocked = BlockedBatcher::with(&options).await;
    let mut pending = vec![blocked.first];
    pending.extend(["a", "b", "c"].map(|name| submit(&blocked.batcher, item(name, 0))));

    let refused = blocked.batcher.submit(item("too many", 0)).now_or_never();
    assert_eq!(refused, Some(Err(Error::Overloaded)));

    blocked.lock.release().await;
    for result in join_all(pending).await {
        result.unwrap();
    }
    assert_eq!(names(&blocked.postgres).await, ["a", "b", "c", "first"]);
}
