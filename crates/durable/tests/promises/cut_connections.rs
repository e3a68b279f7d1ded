//! The connections that carry wakes are cut: wakes that were lost are found when they are back.

use std::time::{Duration, Instant};

use duroxide::runtime::RuntimeOptions;
use tokio::time::sleep;

use crate::{
    fixture::*,
    test_runtime::{TestRuntime, all_add_up, start_sums},
};

/// A dispatcher that is not woken waits for longer than any test.
const NEVER: Duration = Duration::from_secs(3_600);
const CUT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LISTEN%'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_while_the_listening_connection_is_cut_repeatedly() {
    const MANY: usize = 40;
    let fixture = Fixture::new().await;
    // Two processes that need each other: one runs orchestrations only, the other activities.
    let one = fixture.proxied_with(with_fallback(NEVER)).await;
    let other = provider(&fixture.database.url(), with_fallback(NEVER)).await;
    let only = |orchestrations, workers| RuntimeOptions {
        orchestration_concurrency: orchestrations,
        worker_concurrency: workers,
        ..RuntimeOptions::default()
    };
    let runtimes = [
        TestRuntime::start(&one, only(2, 0)).await,
        TestRuntime::start(&other, only(0, 2)).await,
    ];
    start_sums(&other, 0..MANY).await;
    let began = Instant::now();
    let mut cut = 0;
    while began.elapsed() < Duration::from_secs(4) {
        cut += fixture.sql(CUT).await.len();
        sleep(Duration::from_millis(50)).await;
    }
    assert!(cut > 5, "{cut}");
    all_add_up(&one, MANY, Duration::from_secs(60)).await;
    for runtime in runtimes {
        runtime.end().await;
    }
}

/// An item that is written while the connection is cut is found by the recheck after the reconnect.
#[tokio::test]
async fn items_written_while_the_connection_is_cut_are_found() {
    let fixture = Fixture::new().await;
    let provider = fixture.proxied_with(with_fallback(NEVER)).await;
    let other = fixture.direct().await;
    fixture.until_live(&provider).await;
    for round in 0..10 {
        let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
        let working = fixture
            .parked(&provider, fetch_activity(&provider, LONG))
            .await;
        fixture.sql(CUT).await;
        enqueue(&other, start(&round.to_string())).await;
        schedule(&other, activity("a", round + 2)).await;
        waiting.await.expect("it is found");
        working.await.expect("it is found");
    }
}

/// Every connection of a process at once, while it waits.
#[tokio::test]
async fn an_item_is_found_after_all_connections_were_cut() {
    let fixture = Fixture::new().await;
    let provider = fixture.proxied_with(with_fallback(NEVER)).await;
    let other = fixture.direct().await;
    for round in 0..5 {
        // An item that is leased at the moment of the cut can be fetched again when its lease expires.
        let lease = Duration::from_secs(5);
        let waiting = fixture.parked(&provider, fetch(&provider, lease)).await;
        fixture.proxy.cut();
        let instance = round.to_string();
        enqueue(&other, start(&instance)).await;
        let (item, token, _) = waiting.await.expect("it is found");
        assert_eq!(item.instance, instance);
        end_turn(&provider, &token, first_turn(&instance)).await;
    }
}
