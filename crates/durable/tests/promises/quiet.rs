//! Nothing is asked of the database while nothing happens, and nobody is sent away early.

use std::{sync::Arc, time::Duration};

use duroxide::{
    OrchestrationRegistry,
    providers::{DispatcherCapabilityFilter, ExecutionMetadata, Provider, SemverRange, TagFilter},
    runtime::{Runtime, RuntimeOptions, registry::ActivityRegistry},
};
use semver::Version;
use tokio::time::{Instant, sleep};

use crate::ground::*;

/// The runtime sleeps out its shortest interval after a fetch that was empty too early.
#[tokio::test]
async fn never_nothing_before_the_poll_timeout_even_when_woken_in_vain() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    let turn = Turn {
        events: vec![started("a")],
        metadata: ExecutionMetadata {
            pinned_duroxide_version: Some(Version::new(1, 0, 0)),
            ..named()
        },
        ..Turn::default()
    };
    end_turn(&provider, &token, turn).await;
    ground.settle(&provider).await;

    const BRIEF: Duration = Duration::from_millis(1_500);
    let fetching = provider.clone();
    let waiting = ground
        .parked(&provider, async move {
            let cannot = DispatcherCapabilityFilter {
                supported_duroxide_versions: vec![SemverRange::new(
                    Version::new(9, 0, 0),
                    Version::new(9, 9, 9),
                )],
            };
            let began = Instant::now();
            let got = fetching
                .fetch_orchestration_item(LONG, BRIEF, Some(&cannot))
                .await;
            assert!(got.expect("it can be asked").is_none());
            began.elapsed()
        })
        .await;
    let before = ground.proxy.count("take_instances");
    for id in 2..5 {
        enqueue(&provider, timer("a", id, Duration::ZERO).0).await;
    }
    let lasted = waiting.await.expect("no panic");
    assert!(lasted >= BRIEF, "{lasted:?}");
    assert!(
        ground.proxy.count("take_instances") > before,
        "it was woken"
    );
}

#[tokio::test]
async fn who_comes_back_asks_nothing_while_nothing_has_changed() {
    const BRIEF: Duration = Duration::from_millis(20);
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let other = ground.other().await;
    ground.settle(&provider).await;
    let look_for_work = async || {
        let filter = TagFilter::DefaultOnly;
        let got = provider.fetch_work_item(LONG, BRIEF, None, &filter).await;
        got.expect("it can be asked")
    };
    // Each kind has to look once.
    assert!(look_for_work().await.is_none());
    let before = ground.proxy.count("take_");
    for _ in 0..20 {
        let got = provider.fetch_orchestration_item(LONG, BRIEF, None).await;
        assert!(got.expect("it can be asked").is_none());
        assert!(look_for_work().await.is_none());
    }
    assert_eq!(ground.proxy.count("take_") - before, 0);

    // What another process writes is found all the same.
    schedule(&other, activity("a", 2)).await;
    until("it is found", async || look_for_work().await.is_some()).await;
}

/// What is due is found by whoever comes back after it, although nobody said anything.
#[tokio::test]
async fn who_comes_back_after_something_was_due_asks() {
    const BRIEF: Duration = Duration::from_millis(20);
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    begin(&provider, "a").await;
    ground.settle(&provider).await;
    let (item, due_ms) = timer("a", 2, Duration::from_millis(500));
    enqueue(&provider, item).await;
    until("it is found", async || {
        let got = provider.fetch_orchestration_item(LONG, BRIEF, None).await;
        got.expect("it can be asked").is_some()
    })
    .await;
    assert!(now_ms() >= due_ms, "it was not due");
}

/// A whole runtime that has nothing to do: what its dispatchers would ask on each of their returns,
/// were they to ask, is more than ten times what is allowed.
#[tokio::test]
async fn idle_load() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
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
    ground.settle(&provider).await;
    // The runtime looks into its own gauges at its start.
    let own = || ground.proxy.statements().len();
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
    let asked = ground.proxy.statements().split_off(before);
    assert!(asked.len() <= 10, "{asked:?}");
    runtime.shutdown(Some(0)).await;
}
