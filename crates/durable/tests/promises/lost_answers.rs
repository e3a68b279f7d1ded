//! A request or its answer is lost: the provider repeats the call, its effect happens once, and its
//! waiters are woken.

use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};

use crate::{
    fixture::*,
    proxy::Loss::{self, Answer, Request},
};

const MESSAGES: &str = "SELECT count(*) FROM @schema@.message";
const ACTIVITIES: &str = "SELECT count(*) FROM @schema@.activity";
const EVENTS: &str = "SELECT count(*) FROM @schema@.event";

async fn assert_lost_turn_takes_effect_once(loses: Loss, times: u32) {
    let (fixture, provider) = Fixture::live().await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    // A waiter for everything that the turn makes ready.
    let dispatcher = fixture.parked(&provider, fetch(&provider, LONG)).await;
    let worker = fixture
        .parked(&provider, fetch_activity(&provider, LONG))
        .await;
    let client = provider.clone();
    let end = fixture
        .parked(&provider, async move {
            client.wait_for_orchestration("a", POLL).await
        })
        .await;
    fixture.proxy.lose(".apply_changes(", loses, times);
    let turn = Turn {
        activities: vec![activity("b", 2)],
        messages: vec![start("b")],
        ..last_turn("a", "x")
    };
    end_turn(&provider, &token, turn).await;
    assert!(fixture.proxy.has_lost());
    assert_eq!(fixture.number(EVENTS).await, 2);
    assert_eq!(fixture.number(MESSAGES).await, 1);
    assert_eq!(fixture.number(ACTIVITIES).await, 1);
    assert_eq!(dispatcher.await.expect("it is woken").0.instance, "b");
    worker.await.expect("it is woken");
    end.await.expect("no panic").expect("it is woken");
    let counted = "SELECT sum(instances)::bigint * 100 + sum(completed)::bigint * 10
         + sum(events)::bigint FROM @schema@.counters";
    assert_eq!(fixture.number(counted).await, 112, "counted once");
}

#[tokio::test]
async fn a_turn_whose_answer_is_lost_takes_effect_once() {
    assert_lost_turn_takes_effect_once(Answer, 1).await;
}

#[tokio::test]
async fn a_turn_whose_answer_is_lost_repeatedly_takes_effect_once() {
    assert_lost_turn_takes_effect_once(Answer, 3).await;
}

#[tokio::test]
async fn a_turn_whose_request_is_lost_takes_effect_once() {
    assert_lost_turn_takes_effect_once(Request, 3).await;
}

#[tokio::test]
async fn the_lost_end_of_an_activity_is_repeated_once() {
    for loses in [Answer, Request] {
        let (fixture, provider) = Fixture::live().await;
        begin(&provider, "a").await;
        schedule(&provider, activity("a", 2)).await;
        let (_, token, _) = fetch_activity(&provider, LONG).await;
        let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
        fixture.proxy.lose(".apply_changes(", loses, 2);
        let completion = WorkItem::ActivityCompleted {
            instance: "a".into(),
            execution_id: 1,
            id: 2,
            result: "done".into(),
        };
        let ended = provider
            .ack_work_item(&token, Some(completion.clone()))
            .await;
        ended.expect("it is held");
        assert!(fixture.proxy.has_lost());
        let (item, ..) = waiting.await.expect("it is woken");
        assert_eq!(item.messages, [completion]);
        assert_eq!(fixture.number(ACTIVITIES).await, 0);
    }
}

/// An event that is sent twice is two events, so the caller decides about a repeat.
#[tokio::test]
async fn an_event_is_not_sent_twice() {
    let (fixture, provider) = Fixture::live().await;
    begin(&provider, "a").await;
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    fixture.proxy.lose(".apply_changes(", Answer, 1);
    let raised = WorkItem::ExternalRaised {
        instance: "a".into(),
        name: "go".into(),
        data: "1".into(),
    };
    let sent = provider
        .enqueue_for_orchestrator(raised.clone(), None)
        .await;
    let unknown = sent.expect_err("it may have been sent");
    assert!(unknown.is_retryable(), "{unknown}");
    let (item, ..) = waiting.await.expect("it is woken");
    assert_eq!(item.messages, [raised]);
}

#[tokio::test]
async fn an_activity_whose_schedule_request_is_lost_is_scheduled_once() {
    let (fixture, provider) = Fixture::live().await;
    let waiting = fixture
        .parked(&provider, fetch_activity(&provider, LONG))
        .await;
    fixture.proxy.lose(".apply_changes(", Request, 1);
    schedule(&provider, activity("a", 2)).await;
    waiting.await.expect("it is woken");
    assert_eq!(fixture.number(ACTIVITIES).await, 1);
}

/// The answer to a release is lost: a waiter is woken all the same.
#[tokio::test]
async fn a_release_whose_answer_is_lost_wakes_a_waiter() {
    let (fixture, provider) = Fixture::live().await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    let waiting = fixture.parked(&provider, fetch(&provider, LONG)).await;
    fixture.proxy.lose("release_instance", Answer, 1);
    // Its result is not checked: a repeat finds that the lease is not held.
    let _ = provider
        .abandon_orchestration_item(&token, None, false)
        .await;
    waiting.await.expect("it is woken");

    schedule(&provider, activity("a", 2)).await;
    let (_, token, _) = fetch_activity_now(&provider).await.expect("it was sent");
    let waiting = fixture
        .parked(&provider, fetch_activity(&provider, LONG))
        .await;
    fixture.proxy.lose("release_activity", Answer, 1);
    let _ = provider.abandon_work_item(&token, None, false).await;
    waiting.await.expect("it is woken");
}

/// The answer to a fetch is lost: the item goes to a waiter when its lease expires.
#[tokio::test]
async fn an_item_whose_fetch_answer_is_lost_is_fetched_after_its_lease() {
    const LEASE: Duration = Duration::from_secs(1);
    let (fixture, provider) = Fixture::live().await;
    fixture.proxy.lose("fetch_instances", Answer, 1);
    let waiting = fixture.parked(&provider, fetch(&provider, LEASE)).await;
    enqueue(&provider, start("a")).await;
    assert_eq!(waiting.await.expect("it is woken").0.instance, "a");
    assert!(fixture.proxy.has_lost());

    fixture.proxy.lose("fetch_activities", Answer, 1);
    let waiting = fixture
        .parked(&provider, fetch_activity(&provider, LEASE))
        .await;
    schedule(&provider, activity("a", 2)).await;
    waiting.await.expect("it is woken");
    assert!(fixture.proxy.has_lost());
}

#[tokio::test]
async fn a_read_whose_answer_is_lost_is_repeated() {
    let (fixture, provider) = Fixture::live().await;
    begin(&provider, "a").await;
    for loses in [Answer, Request] {
        fixture.proxy.lose(".read_histories(", loses, 2);
        assert_eq!(provider.read("a").await.expect("it is read").len(), 1);
        assert!(fixture.proxy.has_lost());
    }
    let admin = provider.as_management_capability().expect("it can");
    fixture.proxy.cut();
    assert_eq!(admin.list_instances().await.expect("it is read"), ["a"]);
}

/// The answer to a renewal is lost: the lease is held for as long as was asked.
#[tokio::test]
async fn a_renewal_whose_answer_is_lost_holds_the_lease() {
    let (fixture, provider) = Fixture::live().await;
    schedule(&provider, activity("a", 2)).await;
    let (_, token, _) = fetch_activity(&provider, POLL).await;
    for loses in [Answer, Request] {
        fixture.proxy.lose("renew_activity", loses, 1);
        let renewed = provider.renew_work_item_lock(&token, LONG).await;
        renewed.expect("it is held");
        assert!(fixture.proxy.has_lost());
    }
    provider.ack_work_item(&token, None).await.expect("held");
}
