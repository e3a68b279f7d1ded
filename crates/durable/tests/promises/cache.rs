//! Cached histories: they save reads and are never wrong.

use duroxide::{
    Event, EventKind,
    providers::{ExecutionMetadata, Provider},
};
use std::time::Duration;
use wakeline_durable::{Options, PostgresProvider};

use crate::{fixture::*, proxy::Loss};

const LARGE: usize = 200_000;

fn caching(history_cache_bytes: usize) -> Options {
    Options {
        history_cache_bytes,
        ..options()
    }
}

/// An instance with a large history.
async fn begin_large(provider: &PostgresProvider, instance: &str) {
    enqueue(provider, start(instance)).await;
    let (_, token, _) = fetch_now(provider).await.expect("it was sent");
    let note = EventKind::CustomStatusUpdated {
        status: Some("x".repeat(LARGE)),
    };
    let turn = Turn {
        events: vec![started(instance), event(instance, 2, note)],
        metadata: named(),
        ..Turn::default()
    };
    end_turn(provider, &token, turn).await;
}

/// Runs a turn that appends one event; returns the events before it.
async fn turn(provider: &PostgresProvider, instance: &str, number: u64) -> Vec<Event> {
    enqueue(provider, timer(instance, number, Duration::ZERO).0).await;
    let (item, token, _) = fetch_now(provider).await.expect("it was sent");
    assert_eq!(item.instance, instance);
    assert_eq!(item.history_error, None);
    let turn = Turn {
        events: vec![event(
            instance,
            number,
            EventKind::TimerFired { fire_at_ms: 0 },
        )],
        metadata: ExecutionMetadata::default(),
        ..Turn::default()
    };
    end_turn(provider, &token, turn).await;
    item.history
}

fn numbers(history: &[Event]) -> Vec<u64> {
    history.iter().map(Event::event_id).collect()
}

#[tokio::test]
async fn a_history_is_not_read_again_for_every_turn() {
    let (fixture, provider) = Fixture::with_provider().await;
    begin_large(&provider, "a").await;
    let before = fixture.proxy.answered_bytes();
    for number in 3..10 {
        let history = turn(&provider, "a", number).await;
        assert_eq!(numbers(&history), (1..number).collect::<Vec<_>>());
        let read = provider.read("a").await.expect("it can be read");
        assert_eq!(numbers(&read), (1..=number).collect::<Vec<_>>());
    }
    let answered = fixture.proxy.answered_bytes() - before;
    assert!(answered < LARGE as u64 / 2, "{answered}");

    // A new process reads it once.
    let newcomer = fixture.proxied().await;
    let before = fixture.proxy.answered_bytes();
    turn(&newcomer, "a", 10).await;
    let answered = fixture.proxy.answered_bytes() - before;
    assert!(answered >= LARGE as u64, "{answered}");
    turn(&newcomer, "a", 11).await;
    let answered = fixture.proxy.answered_bytes() - before;
    assert!(answered < LARGE as u64 * 2, "{answered}");
}

#[tokio::test]
async fn two_processes_in_turn_see_the_whole_history() {
    let fixture = Fixture::new().await;
    let both = [fixture.proxied().await, fixture.direct().await];
    let [one, other] = &both;
    begin(one, "a").await;
    // Both cache it, and each continues where the other has ended.
    for number in 2..30 {
        let provider = if number % 3 == 0 { other } else { one };
        let history = turn(provider, "a", number).await;
        assert_eq!(numbers(&history), (1..number).collect::<Vec<_>>());
        // Not every time, so that the cached history is behind.
        let readers = if number % 4 == 0 { &both[..] } else { &[] };
        for provider in readers {
            let read = provider.read("a").await.expect("it can be read");
            assert_eq!(numbers(&read), (1..=number).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn a_history_edited_by_hand_is_read_again() {
    let (fixture, provider) = Fixture::with_provider().await;
    begin(&provider, "a").await;
    turn(&provider, "a", 2).await;
    assert_eq!(provider.read("a").await.expect("it can be read").len(), 2);
    fixture
        .sql(
            "UPDATE @schema@.event SET data = replace(data, '\"Work\"', '\"Edited\"')
             WHERE instance = 'a' AND number = 1",
        )
        .await;
    let is_edited = |history: &[Event]| match &history[0].kind {
        EventKind::OrchestrationStarted { name, .. } => name == "Edited",
        _ => false,
    };
    assert!(is_edited(
        &provider.read("a").await.expect("it can be read")
    ));
    assert!(is_edited(&turn(&provider, "a", 3).await));

    fixture
        .sql("UPDATE @schema@.event SET data = 'none' WHERE instance = 'a' AND number = 2")
        .await;
    let unread = provider.read("a").await.expect_err("it cannot be read");
    assert!(!unread.is_retryable(), "{unread}");
    enqueue(&provider, timer("a", 4, Duration::ZERO).0).await;
    let (item, ..) = fetch_now(&provider).await.expect("it was sent");
    assert!(item.history_error.is_some());
}

#[tokio::test]
async fn an_instance_created_again_does_not_get_the_cached_history() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.proxied().await, fixture.direct().await);
    begin(&one, "a").await;
    for number in 2..5 {
        turn(&one, "a", number).await;
    }
    let admin = other.as_management_capability().expect("it can");
    let deleted = admin.delete_instance("a", true).await;
    assert_eq!(deleted.expect("it is forced").instances_deleted, 1);
    assert!(one.read("a").await.expect("it can be read").is_empty());
    // As many events as the first instance had when it was read last: only the incarnation differs.
    begin(&other, "a").await;
    for number in 2..5 {
        let kind = EventKind::ExternalEvent {
            name: "second".into(),
            data: number.to_string(),
        };
        enqueue(&other, timer("a", number, Duration::ZERO).0).await;
        let (_, token, _) = fetch_now(&other).await.expect("it was sent");
        let turn = Turn {
            events: vec![event("a", number, kind)],
            ..Turn::default()
        };
        end_turn(&other, &token, turn).await;
    }
    let theirs = other.read("a").await.expect("it can be read");
    assert_eq!(one.read("a").await.expect("it can be read"), theirs);
    assert_eq!(turn(&one, "a", 5).await, theirs);
}

#[tokio::test]
async fn a_provider_without_a_cache_works() {
    let fixture = Fixture::new().await;
    let provider = fixture.proxied_with(caching(0)).await;
    begin_large(&provider, "a").await;
    let before = fixture.proxy.answered_bytes();
    for number in 3..6 {
        let history = turn(&provider, "a", number).await;
        assert_eq!(numbers(&history), (1..number).collect::<Vec<_>>());
        let read = provider.read("a").await.expect("it can be read");
        assert_eq!(numbers(&read), (1..=number).collect::<Vec<_>>());
    }
    let answered = fixture.proxy.answered_bytes() - before;
    assert!(answered >= LARGE as u64 * 6, "{answered}");
}

/// A history that does not fit, and many that evict each other.
#[tokio::test]
async fn a_provider_with_a_small_cache_works() {
    let fixture = Fixture::new().await;
    let provider = fixture.proxied_with(caching(2_000)).await;
    begin_large(&provider, "large").await;
    for instance in 0..10 {
        begin(&provider, &instance.to_string()).await;
    }
    for number in 2..5 {
        turn(&provider, "large", number + 1).await;
        for instance in 0..10 {
            let history = turn(&provider, &instance.to_string(), number).await;
            assert_eq!(numbers(&history), (1..number).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn an_outage_while_a_history_is_read_is_no_attempt() {
    let fixture = Fixture::new().await;
    let options = Options {
        outage_patience: Duration::ZERO,
        // Room for a handful of short histories.
        ..caching(2_400)
    };
    let provider = fixture.proxied_with(options).await;
    fixture.until_live(&provider).await;
    begin(&provider, "a").await;
    for number in 0..12 {
        begin(&provider, &format!("other {number}")).await;
    }
    enqueue(&provider, timer("a", 2, Duration::ZERO).0).await;

    // The database still says that this process caches it; it was evicted.
    fixture.proxy.lose(".read_histories(", Loss::Request, 1);
    let error = provider
        .fetch_orchestration_item(POLL, Duration::ZERO, None)
        .await
        .expect_err("the history cannot be asked for");
    assert!(error.is_retryable(), "{error}");
    assert!(fixture.proxy.has_lost());

    let (item, _, attempts) = fetch_now(&provider).await.expect("it was given back");
    assert_eq!((item.history_error, attempts), (None, 1));
    assert_eq!(numbers(&item.history), [1]);
}
