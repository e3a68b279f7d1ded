//! A timer wakes when it is due, not before, and none is lost.

use std::time::Duration;

use crate::fixture::*;

const SOON: Duration = Duration::from_millis(600);
const LATER: Duration = Duration::from_millis(1_500);
/// Longer than any test waits.
const FAR: Duration = Duration::from_secs(3_600);

/// Runs the first turn of each instance, so that its timers can be fetched.
async fn begin_all(provider: &wakeline_durable::PostgresProvider, instances: &[&str]) {
    for instance in instances {
        begin(provider, instance).await;
    }
}

#[tokio::test]
async fn timer_wake() {
    let (fixture, provider) = Fixture::with_provider().await;
    begin_all(&provider, &["a"]).await;
    fixture.until_live(&provider).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    let (item, due_ms) = timer("a", 2, SOON);
    let before = fixture.proxy.count("fetch_instances");
    enqueue(&provider, item.clone()).await;
    let (got, ..) = waiting.await.expect("no panic");
    assert!(now_ms() >= due_ms, "it was not due");
    assert_eq!(got.messages, [item]);
    // The dispatcher did not poll until it was due.
    let asked = fixture.proxy.count("fetch_instances") - before;
    assert!(asked <= 3, "{asked}");
}

#[tokio::test]
async fn a_timer_set_by_another_process_wakes() {
    let (fixture, provider) = Fixture::with_provider().await;
    let other = fixture.direct().await;
    begin_all(&provider, &["a"]).await;
    fixture.until_live(&provider).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    let (item, due_ms) = timer("a", 2, SOON);
    enqueue(&other, item).await;
    waiting.await.expect("it is told");
    assert!(now_ms() >= due_ms, "it was not due");
}

#[tokio::test]
async fn timer_update_an_earlier_timer_wakes_first_and_the_later_one_still_wakes() {
    let (fixture, provider) = Fixture::with_provider().await;
    begin_all(&provider, &["far", "later", "soon"]).await;
    fixture.until_live(&provider).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    enqueue(&provider, timer("far", 2, FAR).0).await;
    let (later, later_ms) = timer("later", 2, LATER);
    enqueue(&provider, later).await;
    let (soon, soon_ms) = timer("soon", 2, SOON);
    enqueue(&provider, soon).await;
    // An item that is due at once is fetched first and changes nothing for the timers.
    enqueue(&provider, start("now")).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "now");
    for (instance, due_ms) in [("soon", soon_ms), ("later", later_ms)] {
        let (got, ..) = fetch(&provider, LONG).await;
        assert_eq!(got.instance, instance);
        assert!(now_ms() >= due_ms, "it was not due");
    }
}

#[tokio::test]
async fn an_earlier_timer_of_another_process_wakes_first() {
    let (fixture, provider) = Fixture::with_provider().await;
    let other = fixture.direct().await;
    begin_all(&provider, &["far", "soon"]).await;
    fixture.until_live(&provider).await;
    enqueue(&provider, timer("far", 2, FAR).0).await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    let (soon, due_ms) = timer("soon", 2, SOON);
    enqueue(&other, soon).await;
    assert_eq!(waiting.await.expect("no panic").0.instance, "soon");
    assert!(now_ms() >= due_ms, "it was not due");
}

#[tokio::test]
async fn timers_from_before_a_restart_wake() {
    let fixture = Fixture::new().await;
    let before = fixture.proxied().await;
    begin_all(&before, &["soon", "later"]).await;
    let (later, later_ms) = timer("later", 2, LATER);
    enqueue(&before, later).await;
    let (soon, soon_ms) = timer("soon", 2, SOON);
    enqueue(&before, soon).await;
    drop(before);
    let after = fixture.proxied().await;
    for (instance, due_ms) in [("soon", soon_ms), ("later", later_ms)] {
        let (got, ..) = fetch(&after, LONG).await;
        assert_eq!(got.instance, instance);
        assert!(now_ms() >= due_ms, "it was not due");
    }
}
