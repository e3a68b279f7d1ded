//! An answer that is lost: what was done is not done twice, what was not done is done, and whoever
//! waits for it is woken all the same.

use std::time::Duration;

use duroxide::{
    EventKind,
    providers::{Provider, WorkItem},
};
use wakeline_durable::PostgresProvider;

use crate::{
    ground::*,
    proxy::Lose::{self, Answer, Request},
};

const MESSAGES: &str = "SELECT count(*) FROM @schema@.message";
const TASKS: &str = "SELECT count(*) FROM @schema@.task";
const EVENTS: &str = "SELECT count(*) FROM @schema@.event";

/// A provider whose connections are all there, so that none is made while one is lost.
async fn ready(ground: &Ground) -> PostgresProvider {
    let provider = ground.watched().await;
    ground.settle(&provider).await;
    provider
}

async fn a_turn(loses: Lose, times: u32) {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    // One of each waits for what the turn brings.
    let dispatcher = ground.parked(&provider, fetch(&provider, LONG)).await;
    let worker = ground.parked(&provider, fetch_work(&provider, LONG)).await;
    let client = provider.clone();
    let end = ground
        .parked(&provider, async move {
            client.wait_for_orchestration("a", POLL).await
        })
        .await;
    ground.proxy.lose(".step(", loses, times);
    let turn = Turn {
        events: vec![
            started("a"),
            event(
                "a",
                2,
                EventKind::OrchestrationCompleted { output: "x".into() },
            ),
        ],
        activities: vec![activity("b", 2)],
        messages: vec![start("b")],
        metadata: duroxide::providers::ExecutionMetadata {
            status: Some("Completed".into()),
            output: Some("x".into()),
            ..named()
        },
    };
    end_turn(&provider, &token, turn).await;
    assert!(ground.proxy.has_lost());
    assert_eq!(ground.number(EVENTS).await, 2);
    assert_eq!(ground.number(MESSAGES).await, 1);
    assert_eq!(ground.number(TASKS).await, 1);
    assert_eq!(dispatcher.await.expect("it is woken").0.instance, "b");
    worker.await.expect("it is woken");
    end.await.expect("no panic").expect("it is woken");
    let counted = "SELECT sum(instances)::bigint * 100 + sum(completed)::bigint * 10
         + sum(events)::bigint FROM @schema@.tally";
    assert_eq!(ground.number(counted).await, 112, "counted once");
}

#[tokio::test]
async fn a_turn_whose_answer_is_lost() {
    a_turn(Answer, 1).await;
}

#[tokio::test]
async fn a_turn_whose_answer_is_lost_again_and_again() {
    a_turn(Answer, 3).await;
}

#[tokio::test]
async fn a_turn_that_is_lost() {
    a_turn(Request, 3).await;
}

#[tokio::test]
async fn the_end_of_an_activity() {
    for loses in [Answer, Request] {
        let ground = Ground::new().await;
        let provider = ready(&ground).await;
        begin(&provider, "a").await;
        schedule(&provider, activity("a", 2)).await;
        let (_, token, _) = fetch_work(&provider, LONG).await;
        let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
        ground.proxy.lose(".step(", loses, 2);
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
        assert!(ground.proxy.has_lost());
        let (item, ..) = waiting.await.expect("it is woken");
        assert_eq!(item.messages, [completion]);
        assert_eq!(ground.number(TASKS).await, 0);
    }
}

/// An event that was sent twice would be two events. Only the caller can know better.
#[tokio::test]
async fn an_event_is_not_sent_twice() {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    begin(&provider, "a").await;
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    ground.proxy.lose(".step(", Answer, 1);
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
async fn an_activity_that_is_scheduled() {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    let waiting = ground.parked(&provider, fetch_work(&provider, LONG)).await;
    ground.proxy.lose(".step(", Request, 1);
    schedule(&provider, activity("a", 2)).await;
    waiting.await.expect("it is woken");
    assert_eq!(ground.number(TASKS).await, 1);
}

/// Given back, and nobody has heard of it: whoever waits is woken all the same.
#[tokio::test]
async fn what_is_given_back() {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    enqueue(&provider, start("a")).await;
    let (_, token, _) = fetch_now(&provider).await.expect("it was sent");
    let waiting = ground.parked(&provider, fetch(&provider, LONG)).await;
    ground.proxy.lose("give_back_instance", Answer, 1);
    // What it says does not matter: the lease is not held afterwards, and it was before.
    let _ = provider
        .abandon_orchestration_item(&token, None, false)
        .await;
    waiting.await.expect("it is woken");

    schedule(&provider, activity("a", 2)).await;
    let (_, token, _) = fetch_work_now(&provider).await.expect("it was sent");
    let waiting = ground.parked(&provider, fetch_work(&provider, LONG)).await;
    ground.proxy.lose("give_back_task", Answer, 1);
    let _ = provider.abandon_work_item(&token, None, false).await;
    waiting.await.expect("it is woken");
}

/// Taken, and nobody has heard of it: it comes back when its lease is over, to somebody who waits.
#[tokio::test]
async fn what_is_taken() {
    const LEASE: Duration = Duration::from_secs(1);
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    ground.proxy.lose("take_instances", Answer, 1);
    let waiting = ground.parked(&provider, fetch(&provider, LEASE)).await;
    enqueue(&provider, start("a")).await;
    assert_eq!(waiting.await.expect("it is woken").0.instance, "a");
    assert!(ground.proxy.has_lost());

    ground.proxy.lose("take_tasks", Answer, 1);
    let waiting = ground.parked(&provider, fetch_work(&provider, LEASE)).await;
    schedule(&provider, activity("a", 2)).await;
    waiting.await.expect("it is woken");
    assert!(ground.proxy.has_lost());
}

/// What is asked only is asked again.
#[tokio::test]
async fn what_is_read() {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    begin(&provider, "a").await;
    for loses in [Answer, Request] {
        ground.proxy.lose(".look(", loses, 2);
        assert_eq!(provider.read("a").await.expect("it is read").len(), 1);
        assert!(ground.proxy.has_lost());
    }
    let admin = provider.as_management_capability().expect("it can");
    ground.proxy.cut();
    assert_eq!(admin.list_instances().await.expect("it is read"), ["a"]);
}

/// A lease that is prolonged, and a lost answer: it is still held, for as long as was asked.
#[tokio::test]
async fn a_lease_that_is_prolonged() {
    let ground = Ground::new().await;
    let provider = ready(&ground).await;
    schedule(&provider, activity("a", 2)).await;
    let (_, token, _) = fetch_work(&provider, POLL).await;
    for loses in [Answer, Request] {
        ground.proxy.lose("prolong_task", loses, 1);
        let prolonged = provider.renew_work_item_lock(&token, LONG).await;
        prolonged.expect("it is held");
        assert!(ground.proxy.has_lost());
    }
    provider.ack_work_item(&token, None).await.expect("held");
}
