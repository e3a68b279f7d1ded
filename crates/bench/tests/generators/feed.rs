//! `bench feed`.

use std::sync::atomic::Ordering;

use super::bench;
use super::fake_feed::FakeFeedServer;

const SHORT: &str = "--connections 1,4 --seconds 100ms --tuples 50,350 --streams 1,20 --saves 6 \
                     --live 10s --idle 100ms --patience 5s";

async fn feed(server: &FakeFeedServer, more: &str) -> anyhow::Result<()> {
    bench(&format!("feed --url {} {SHORT} {more}", server.url)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_phases_save_and_stream() {
    let server = FakeFeedServer::start().await;
    feed(&server, "--json").await.unwrap();
    let state = &server.state;
    assert_eq!(state.items("backfill-50"), 50);
    assert_eq!(state.items("backfill-350"), 350);
    assert!(state.items("single-4-3") > 0 && state.items("graphs-15") >= 100);
    assert_eq!(state.open.most(), 20);
    // The first ones are not counted, but saved.
    assert_eq!(state.items("live-all-of-them-are-concerned-20-0"), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_requested_phases_are_measured() {
    let server = FakeFeedServer::start().await;
    feed(&server, "--only backfill").await.unwrap();
    assert_eq!(server.state.items("backfill-50"), 50);
    assert_eq!(server.state.items("single-4-3"), 0);
    assert_eq!(server.state.open.most(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_says_sync_too_early_is_an_error() {
    let server = FakeFeedServer::start().await;
    server.state.loses_pages.store(true, Ordering::SeqCst);
    let error = feed(&server, "--only backfill")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("SYNC after 100 tuples"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_that_fails_is_an_error() {
    let server = FakeFeedServer::start().await;
    server.state.refuses_saves.store(true, Ordering::SeqCst);
    let error = feed(&server, "--only save").await.unwrap_err().to_string();
    assert!(
        error.contains("503") && error.contains("not now"),
        "{error}"
    );
}
