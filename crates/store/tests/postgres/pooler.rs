//! Behind PgBouncer in transaction mode, where every statement may meet another server process.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;
use wakeline_store::{
    Error, Postgres,
    postgres::{Batcher, Options},
};
use wakeline_testbed::Pgbouncer;

use crate::fixture::{HANGS, ITEMS, Insert, Lock, item, number, submit};

fn start() -> (wakeline_testbed::Postgres, Pgbouncer, String) {
    let server = wakeline_testbed::Postgres::start().unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    let pooler = Pgbouncer::start(&address, "transaction").unwrap();
    let url = pooler.url_for("postgres");
    (server, pooler, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_batches_and_queries_work() {
    let (_server, _pooler, url) = start();
    let opening = (0..4).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { Postgres::open(&url, &Options::default(), &[ITEMS]).await })
    });
    for (handle, opened) in join_all(opening).await.into_iter().enumerate() {
        let postgres = opened.unwrap().unwrap();
        let batcher = Batcher::start(&postgres, Insert, 4);
        let inserts =
            (0..200).map(|number| batcher.submit(item(format!("{handle}-{number}"), number)));
        let queries = (0..50).map(|_| number(&postgres, "SELECT count(*) FROM wakeline.item"));
        let (inserted, _) = tokio::join!(join_all(inserts), join_all(queries));
        let expected: Vec<_> = (0..200).map(Ok).collect();
        assert_eq!(inserted, expected);
    }
    let postgres = Postgres::open(&url, &Options::default(), &[ITEMS])
        .await
        .unwrap();
    assert_eq!(
        number(&postgres, "SELECT count(*) FROM wakeline.item").await,
        800
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_lost_in_the_middle_of_a_batch_leaves_an_unknown_outcome() {
    let (mut server, _pooler, url) = start();
    let postgres = Postgres::open(&url, &Options::default(), &[ITEMS])
        .await
        .unwrap();
    let direct = Postgres::open(&server.url(), &Options::default(), &[ITEMS])
        .await
        .unwrap();
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&direct).await;
    let pending = submit(&batcher, item("lost", 0));
    lock.blocks(1).await;

    server.crash().unwrap();

    let result = timeout(HANGS, pending).await.unwrap();
    assert!(
        matches!(result, Err(Error::OutcomeUnknown(_))),
        "{result:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_get_unavailable_while_the_server_is_down_behind_a_waiting_pooler() {
    let (mut server, _pooler, url) = start();
    let options = Options {
        connect_timeout: Duration::from_millis(500),
        statement_timeout: Duration::from_millis(500),
        ..Options::default()
    };
    let postgres = Postgres::open(&url, &options, &[ITEMS]).await.unwrap();
    let batcher = Batcher::start(&postgres, Insert, 1);
    batcher.submit(item("before", 0)).await.unwrap();

    server.stop().unwrap();

    let result = timeout(HANGS, batcher.submit(item("first", 0)))
        .await
        .unwrap();
    assert!(result.as_ref().is_err_and(Error::is_outage), "{result:?}");
    // Not sent on the silent connection of the first one, where its outcome would be unknown.
    let result = timeout(HANGS, batcher.submit(item("second", 0)))
        .await
        .unwrap();
    assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    for _ in 0..8 {
        let result = timeout(HANGS, postgres.query("one", "SELECT 1", &[]))
            .await
            .unwrap();
        assert!(result.as_ref().is_err_and(Error::is_outage), "{result:?}");
    }
}
