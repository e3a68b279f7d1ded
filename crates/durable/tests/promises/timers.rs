//! Timers wake when they are due, not before, and none is forgotten.

use std::time::Duration;

use crate::ground::*;

const SOON: Duration = Duration::from_millis(600);
const LATER: Duration = Duration::from_millis(1_500);
/// Beyond what any test waits for.
const FAR: Duration = Duration::from_secs(3_600);

/// An instance that has begun, so that a timer for it is work.
async fn begun(provider: &wakeline_durable::PostgresProvider, instances: &[&str]) {
    for instance in instances {
        begin(provider, instance).await;
    }
}

#[tokio::test]
async fn timer_wake() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    begun(&provider, &["a"]).await;
    ground.settle(&provider).await;
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    let (item, due_ms) = timer("a", 2, SOON);
    let before = ground.proxy.count("take_instances");
    enqueue(&provider, item.clone()).await;
    let (got, ..) = waiting.await.expect("no panic");
    assert!(now_ms() >= due_ms, "it was not due");
    assert_eq!(got.messages, [item]);
    // Not asked for again and again until it was due.
    let asked = ground.proxy.count("take_instances") - before;
    assert!(asked <= 3, "{asked}");
}

#[tokio::test]
async fn a_timer_set_by_another_process_wakes() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let other = ground.other().await;
    begun(&provider, &["a"]).await;
    ground.settle(&provider).await;
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    let (item, due_ms) = timer("a", 2, SOON);
    enqueue(&other, item).await;
    waiting.await.expect("it is told");
    assert!(now_ms() >= due_ms, "it was not due");
}

#[tokio::test]
async fn timer_update_an_earlier_timer_overtakes_and_the_later_is_not_forgotten() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    begun(&provider, &["far", "later", "soon"]).await;
    ground.settle(&provider).await;
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    enqueue(&provider, timer("far", 2, FAR).0).await;
    let (later, later_ms) = timer("later", 2, LATER);
    enqueue(&provider, later).await;
    let (soon, soon_ms) = timer("soon", 2, SOON);
    enqueue(&provider, soon).await;
    // One that is due at once is fetched between and changes nothing.
    enqueue(&provider, start("now")).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "now");
    for (instance, due_ms) in [("soon", soon_ms), ("later", later_ms)] {
        let (got, ..) = fetch(&provider, LONG).await;
        assert_eq!(got.instance, instance);
        assert!(now_ms() >= due_ms, "it was not due");
    }
}

#[tokio::test]
async fn an_earlier_timer_of_another_process_overtakes() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    let other = ground.other().await;
    begun(&provider, &["far", "soon"]).await;
    ground.settle(&provider).await;
    enqueue(&provider, timer("far", 2, FAR).0).await;
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    let (soon, due_ms) = timer("soon", 2, SOON);
    enqueue(&other, soon).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "soon");
    assert!(now_ms() >= due_ms, "it was not due");
}

#[tokio::test]
async fn timers_from_before_a_restart_wake() {
    let ground = Ground::new().await;
    let before = ground.watched().await;
    begun(&before, &["soon", "later"]).await;
    let (later, later_ms) = timer("later", 2, LATER);
    enqueue(&before, later).await;
    let (soon, soon_ms) = timer("soon", 2, SOON);
    enqueue(&before, soon).await;
    drop(before);
    let after = ground.watched().await;
    for (instance, due_ms) in [("soon", soon_ms), ("later", later_ms)] {
        let (got, ..) = fetch(&after, LONG).await;
        assert_eq!(got.instance, instance);
        assert!(now_ms() >= due_ms, "it was not due");
    }
}
