//! A provider asks the database nothing while nothing happens, and no fetch returns early.

use std::{sync::Arc, time::Duration};

use duroxide::{
    OrchestrationRegistry,
    providers::{Provider, TagFilter},
    runtime::{Runtime, RuntimeOptions, registry::ActivityRegistry},
};
use tokio::time::{Instant, sleep};

use crate::fixture::*;

/// After a fetch that is empty too early the runtime sleeps for the rest of its shortest interval.
#[tokio::test]
async fn a_fetch_returns_empty_only_at_its_poll_timeout_even_after_a_vain_wake() {
    let (fixture, provider) = Fixture::with_provider().await;
    begin_pinned(&provider, "a", 1).await;
    fixture.until_live(&provider).await;

    const BRIEF: Duration = Duration::from_millis(1_500);
    let fetching = provider.clone();
    let waiting = fixture
        .parked(&provider, async move {
            let began = Instant::now();
            let got = fetching
                .fetch_orchestration_item(LONG, BRIEF, Some(&replays(9)))
                .await;
            assert!(got.expect("it can be asked").is_none());
            began.elapsed()
        })
        .await;
    let before = fixture.proxy.count("fetch_instances");
    for id in 2..5 {
        enqueue(&provider, timer("a", id, Duration::ZERO).0).await;
    }
    let lasted = waiting.await.expect("no panic");
    assert!(lasted >= BRIEF, "{lasted:?}");
    assert!(
        fixture.proxy.count("fetch_instances") > before,
        "it was woken"
    );
}

#[tokio::test]
async fn a_repeated_fetch_sends_no_statement_while_nothing_changed() {
    const BRIEF: Duration = Duration::from_millis(20);
    let (fixture, provider, other) = Fixture::live_pair().await;
    let fetch_work = async || {
        let filter = TagFilter::DefaultOnly;
        let got = provider.fetch_work_item(LONG, BRIEF, None, &filter).await;
        got.expect("it can be asked")
    };
    // Each kind of dispatcher asks once.
    assert!(fetch_work().await.is_none());
    let before = fixture.proxy.count(".fetch_");
    for _ in 0..20 {
        let got = provider.fetch_orchestration_item(LONG, BRIEF, None).await;
        assert!(got.expect("it can be asked").is_none());
        assert!(fetch_work().await.is_none());
    }
    assert_eq!(fixture.proxy.count(".fetch_") - before, 0);

    // An activity that another process writes is found all the same.
    schedule(&other, activity("a", 2)).await;
    until("it is found", async || fetch_work().await.is_some()).await;
}

/// A dispatcher that returns after an item was due finds it, although no wake was published.
#[tokio::test]
async fn a_repeated_fetch_reads_the_store_after_an_item_became_due() {
    const BRIEF: Duration = Duration::from_millis(20);
    let (fixture, provider) = Fixture::with_provider().await;
    begin(&provider, "a").await;
    fixture.until_live(&provider).await;
    let (item, due_ms) = timer("a", 2, Duration::from_millis(500));
    enqueue(&provider, item).await;
    until("it is found", async || {
        let got = provider.fetch_orchestration_item(LONG, BRIEF, None).await;
        got.expect("it can be asked").is_some()
    })
    .await;
    assert!(now_ms() >= due_ms, "it was not due");
}

/// An idle runtime: if its dispatchers asked at each return, they would send more than ten times as
/// many statements as are allowed.
#[tokio::test]
async fn idle_load() {
    let (fixture, provider) = Fixture::with_provider().await;
    let options = RuntimeOptions {
        dispatcher_long_poll_timeout: Duration::from_millis(200),
        orchestration_concurrency: 4,
        worker_concurrency: 4,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::start_with_options(
        Arc::new(provider.clone()),
        ActivityRegistry::builder().build(),
        OrchestrationRegistry::builder().build(),
        options,
    )
    .await;
    fixture.until_live(&provider).await;
    // The runtime reads its gauges when it starts.
    let own = || fixture.proxy.statements().len();
    let mut before = own();
    until("the start is over", async || {
        sleep(Duration::from_secs(1)).await;
        let now = own();
        let is_over = now - before <= 1;
        before = now;
        is_over
    })
    .await;
    sleep(Duration::from_secs(5)).await;
    let asked = fixture.proxy.statements().split_off(before);
    assert!(asked.len() <= 10, "{asked:?}");
    runtime.shutdown(Some(0)).await;
}
