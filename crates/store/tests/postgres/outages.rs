//! The server stops, starts and crashes under the store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use tokio::time::timeout;
use wakeline_store::{
    Error, Postgres,
    postgres::{Batcher, Options},
};

use crate::fixture::{HANGS, ITEMS, Insert, Lock, eventually, item, names, submit};

async fn open(server: &wakeline_testbed::Postgres) -> Postgres {
    Postgres::open(&server.url(), &Options::default(), &[ITEMS])
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_get_unavailable_while_the_server_is_down_and_succeed_afterwards() {
    let mut server = wakeline_testbed::Postgres::start().unwrap();
    let postgres = open(&server).await;
    let batcher = Batcher::start(&postgres, Insert, 2);
    batcher.submit(item("before", 0)).await.unwrap();
    // More often than there are connections, here and below, so that each of them is made, found
    // broken, found missing and made again.
    for _ in 0..20 {
        postgres.query("one", "SELECT 1", &[]).await.unwrap();
    }

    server.stop().unwrap();
    for number in 0..20 {
        let result = timeout(HANGS, batcher.submit(item(format!("{number}"), 0)))
            .await
            .unwrap();
        assert!(result.as_ref().is_err_and(Error::is_outage), "{result:?}");
        let result = timeout(HANGS, postgres.query("one", "SELECT 1", &[]))
            .await
            .unwrap();
        assert!(result.as_ref().is_err_and(Error::is_outage), "{result:?}");
    }

    server.start_again().unwrap();
    eventually("every connection works again", async || {
        let queries = (0..20).map(|_| postgres.query("one", "SELECT 1", &[]));
        join_all(queries).await.iter().all(Result::is_ok)
    })
    .await;
    batcher.submit(item("after", 0)).await.unwrap();
    assert_eq!(names(&postgres).await, ["after", "before"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_session_the_server_ended_is_unavailable_and_not_committed() {
    let server = wakeline_testbed::Postgres::start().unwrap();
    let postgres = open(&server).await;
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let pending = submit(&batcher, item("ended", 0));
    lock.blocks(1).await;

    lock.end_blocked_sessions().await;

    let result = timeout(HANGS, pending).await.unwrap();
    assert!(matches!(result, Err(Error::Unavailable(_))), "{result:?}");
    lock.release().await;
    eventually("batches work again", async || {
        batcher.submit(item("next", 0)).await.is_ok()
    })
    .await;
    assert_eq!(names(&postgres).await, ["next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_is_under_way_when_the_server_crashes_has_an_unknown_outcome() {
    let mut server = wakeline_testbed::Postgres::start().unwrap();
    let postgres = open(&server).await;
    let batcher = Batcher::start(&postgres, Insert, 1);
    let lock = Lock::take(&postgres).await;
    let pending = submit(&batcher, item("stopped", 0));
    lock.blocks(1).await;

    server.crash().unwrap();

    let result = timeout(HANGS, pending).await.unwrap();
    assert!(
        matches!(result, Err(Error::OutcomeUnknown(_))),
        "{result:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_a_crash() {
    const WRITERS: usize = 32;
    const BEFORE: usize = 500;
    const AFTER: usize = 100;
    let mut server = wakeline_testbed::Postgres::start().unwrap();
    // The store must not trust the database's own setting.
    wakeline_testbed::psql(
        &server.url(),
        "ALTER DATABASE postgres SET synchronous_commit = off",
    )
    .unwrap();
    let postgres = open(&server).await;
    let batcher = Batcher::start(&postgres, Insert, 2);
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (batcher, acknowledged, over) =
                (batcher.clone(), acknowledged.clone(), over.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    let name = format!("{writer}-{number}");
                    match batcher.submit(item(&name, 0)).await {
                        Ok(_) => {
                            acknowledged.lock().unwrap().insert(name);
                        }
                        Err(error) => assert!(error.is_outage(), "{error:?}"),
                    }
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let count = || acknowledged.lock().unwrap().len();

    eventually("writers are at work", async || count() >= BEFORE).await;
    server.crash().unwrap();
    let at_crash = count();
    server.start_again().unwrap();
    eventually("writers are at work again", async || {
        count() >= at_crash + AFTER
    })
    .await;
    over.store(true, Ordering::Relaxed);
    for writer in join_all(writers).await {
        writer.unwrap();
    }

    let kept: BTreeSet<String> = names(&postgres).await.into_iter().collect();
    let lost: Vec<_> = acknowledged
        .lock()
        .unwrap()
        .difference(&kept)
        .cloned()
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
}
