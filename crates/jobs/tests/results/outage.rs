//! Redis goes away and comes back, empty: answers and marks are asked for again.

use std::sync::Arc;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use wakeline_bus::Wakes;
use wakeline_jobs::results::{ResultBackend, redis::Redis as TestBackend};
use wakeline_store::Error;
use wakeline_testbed::Redis;
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{LONG, OTHER, begin, found, key, put, request, upload};

fn is_away<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn while_it_is_away_everybody_is_told_so() {
    let mut redis = Redis::start().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    put(&backend, &key("a"), "one", LONG).await;
    redis.stop().unwrap();
    is_away(backend.get(vec![key("a")]).await);
    is_away(
        backend
            .put(key("a"), upload("two"), LONG, Wakes::none())
            .commit_alone()
            .await,
    );
    is_away(backend.begin(request(&key("b")), LONG).commit_alone().await);
    is_away(
        backend
            .end(key("b"), None, Wakes::none())
            .commit_alone()
            .await,
    );
    is_away(backend.in_flight(OTHER, 1).await);
    is_away(backend.forget(OTHER, None).commit_alone().await);

    redis.start_again().unwrap();
    eventually("Redis to be found again", async || {
        backend.get(vec![key("a")]).await.is_ok()
    })
    .await;
    assert!(found(&backend, &key("a")).await.is_none());
    assert!(begin(&backend, &key("a"), LONG).await);
    put(&backend, &key("a"), "two", LONG).await;
    assert_eq!(found(&backend, &key("a")).await.unwrap(), b"two");
}

#[tokio::test]
async fn a_restart_between_two_questions_is_not_noticed() {
    let mut redis = Redis::start().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    for _ in 0..3 {
        assert!(begin(&backend, &key("a"), LONG).await);
        redis.restart().unwrap();
    }
    put(&backend, &key("a"), "one", LONG).await;
    redis.restart().unwrap();
    assert!(found(&backend, &key("a")).await.is_none());
}

/// Takes one connection to Redis. Once `cut` has a permit, it passes the next command on, and ends
/// the connection and takes no other instead of passing the answer back.
async fn lossy(listener: TcpListener, redis: String, cut: Arc<Semaphore>) {
    let (mut client, _) = listener.accept().await.unwrap();
    let mut server = TcpStream::connect(redis).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => return,
        permit = cut.acquire() => permit.unwrap().forget(),
    }
    let mut command = vec![0; 1 << 16];
    let length = client.read(&mut command).await.unwrap();
    drop(listener);
    server.write_all(&command[..length]).await.unwrap();
    let answered = server.read(&mut command).await.unwrap();
    assert!(answered > 0);
}

/// It was done the first time, and is not repeated because Redis has gone since.
#[tokio::test]
async fn of_a_write_that_may_have_been_done_the_outcome_is_unknown() {
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let proxy = format!("redis://{}/", listener.local_addr().unwrap());
    let cut = Arc::new(Semaphore::new(0));
    let target = url.trim_start_matches("redis://").trim_end_matches('/');
    tokio::spawn(lossy(listener, target.to_owned(), cut.clone()));
    let backend = TestBackend::new(&proxy, "test:").unwrap();
    assert!(found(&backend, &key("a")).await.is_none());
    cut.add_permits(1);
    let begun = backend.begin(request(&key("a")), LONG).commit_alone().await;
    assert!(matches!(begun, Err(Error::OutcomeUnknown(_))), "{begun:?}");
    let direct = TestBackend::new(&url, "test:").unwrap();
    assert!(!begin(&direct, &key("a"), LONG).await, "it was done");
    // Nothing can have been done by a question, nor by what was not sent.
    is_away(backend.get(vec![key("a")]).await);
    is_away(
        backend
            .end(key("a"), None, Wakes::none())
            .commit_alone()
            .await,
    );
}

#[tokio::test]
async fn a_node_that_starts_before_redis_finds_it_when_it_is_there() {
    let mut redis = Redis::start().unwrap();
    redis.stop().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    is_away(backend.get(vec![key("a")]).await);
    redis.start_again().unwrap();
    eventually("Redis to be found", async || {
        backend.get(vec![key("a")]).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn what_others_wrote_under_the_prefix_is_no_answer() {
    let redis = Redis::start().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let theirs = key("a");
    let name = format!("test:answer:{}:1:a", theirs.provider);
    let mut set = redis::cmd("SET");
    set.arg(&name).arg("short");
    set.exec_async(&mut connection).await.unwrap();
    let error = backend.get(vec![theirs]).await.unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error:?}");
}

#[test]
fn what_is_logged_of_it_has_no_password() {
    let backend = TestBackend::new("redis://user:secret@127.0.0.1/", "test:").unwrap();
    assert!(!format!("{backend:?}").contains("secret"));
}
