//! `bench hold`.

use std::sync::atomic::Ordering;

use super::bench;
use super::fake_queue::FakeQueueServer;

async fn hold(server: &FakeQueueServer, more: &str) -> anyhow::Result<()> {
    bench(&format!("hold --url {} --idle 200ms {more}", server.url)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_holds_all_waiters_of_one_queue_and_wakes_them_all() {
    let server = FakeQueueServer::start().await;
    hold(&server, "--waiters 200 --wakes 20 --wake-all")
        .await
        .unwrap();
    assert_eq!(server.state.held.most(), 200);
    assert_eq!(server.state.queues(), 1);
    assert_eq!(server.state.delivered.load(Ordering::SeqCst), 220);
    assert!(server.connections() > 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_carries_a_queue_for_each_waiter_over_few_connections() {
    let server = FakeQueueServer::start().await;
    hold(
        &server,
        "--waiters 200 --topics each --http 2 --connections 4 --wakes 20 --wake-all --json",
    )
    .await
    .unwrap();
    assert_eq!(server.state.held.most(), 200);
    assert_eq!(server.state.queues(), 200);
    assert_eq!(server.state.delivered.load(Ordering::SeqCst), 220);
    // Four for the waiters; the rest are the pushes and the probes.
    assert!(server.connections() < 20, "{}", server.connections());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leased_messages_are_acked() {
    let server = FakeQueueServer::start().await;
    hold(&server, "--waiters 20 --wakes 5 --lease --wake-all")
        .await
        .unwrap();
    assert_eq!(server.state.acked.load(Ordering::SeqCst), 25);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_are_spread_over_the_nodes_and_pushes_go_to_their_own() {
    let (first, second) = (
        FakeQueueServer::start().await,
        FakeQueueServer::start().await,
    );
    let pushes = FakeQueueServer::start().await;
    hold(
        &first,
        &format!(
            "--url {} --push-url {} --waiters 20 --wakes 0",
            second.url, pushes.url
        ),
    )
    .await
    .unwrap();
    assert_eq!(
        (
            first.state.held.most(),
            second.state.held.most(),
            pushes.state.held.most()
        ),
        (10, 10, 0)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missed_target_is_a_finding_and_a_failed_request_an_error() {
    let server = FakeQueueServer::start().await;
    hold(
        &server,
        "--waiters 5 --wakes 1 --target-p99 0ms --target-cpu 3",
    )
    .await
    .unwrap();
    server.state.refuses_pushes.store(true, Ordering::SeqCst);
    let error = hold(&server, "--waiters 5 --wakes 2")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("2 requests failed"), "{error}");
    assert!(
        error.contains("507") && error.contains("no room"),
        "{error}"
    );
}
