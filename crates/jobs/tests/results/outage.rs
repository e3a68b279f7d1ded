//! Redis stops and comes back empty: answers and locks are lost, and nothing else.

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

fn assert_unavailable<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn every_call_is_unavailable_while_redis_is_down() {
    let mut redis = Redis::start().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    put(&backend, &key("a"), "one", LONG).await;
    redis.stop().unwrap();
    assert_unavailable(backend.get(vec![key("a")]).await);
    assert_unavailable(
        backend
            .put(key("a"), upload("two"), LONG, Wakes::none())
            .commit_alone()
            .await,
    );
    assert_unavailable(backend.begin(request(&key("b")), LONG).commit_alone().await);
    assert_unavailable(
        backend
            .end(key("b"), None, Wakes::none())
            .commit_alone()
            .await,
    );
    assert_unavailable(backend.in_flight(OTHER, 1).await);
    assert_unavailable(backend.forget(OTHER, None).commit_alone().await);

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
async fn a_restart_of_redis_between_two_calls_fails_none_of_them() {
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

/// A proxy for one connection to Redis. Once `cut` has a permit, it passes the next command on,
/// then ends the connection without the answer, and accepts no other.
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

/// The write was done the first time, and is not repeated because Redis is gone since.
#[tokio::test]
async fn a_write_whose_answer_is_lost_has_an_unknown_outcome() {
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
    // A read, or a command that was not sent, cannot have changed anything.
    assert_unavailable(backend.get(vec![key("a")]).await);
    assert_unavailable(
        backend
            .end(key("a"), None, Wakes::none())
            .commit_alone()
            .await,
    );
}

#[tokio::test]
async fn a_node_that_starts_before_redis_connects_when_redis_is_up() {
    let mut redis = Redis::start().unwrap();
    redis.stop().unwrap();
    let backend = TestBackend::new(&redis.url(), "test:").unwrap();
    assert_unavailable(backend.get(vec![key("a")]).await);
    redis.start_again().unwrap();
    eventually("Redis to be found", async || {
        backend.get(vec![key("a")]).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn a_foreign_value_under_the_prefix_is_an_error() {
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
fn the_debug_text_of_the_backend_has_no_password() {
    let backend = TestBackend::new("redis://user:secret@127.0.0.1/", "test:").unwrap();
    assert!(!format!("{backend:?}").contains("secret"));
}
