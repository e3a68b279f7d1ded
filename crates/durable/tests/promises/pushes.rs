//! Everything that makes work fetchable wakes somebody who waits, not new work alone.

use std::time::Duration;

use duroxide::providers::{Provider, TagFilter};
use wakeline_durable::PostgresProvider;

use crate::ground::*;

const SHORT: Duration = Duration::from_millis(800);

/// One who holds everything there is, and another process where one more waits in vain.
struct Scene {
    ground: Ground,
    holder: PostgresProvider,
    waiter: PostgresProvider,
}

impl Scene {
    async fn new() -> Self {
        let ground = Ground::new().await;
        let holder = ground.other().await;
        let waiter = ground.watched().await;
        ground.settle(&waiter).await;
        Self {
            ground,
            holder,
            waiter,
        }
    }

    async fn hold_instance(&self, lease: Duration) -> String {
        enqueue(&self.holder, start("a")).await;
        let got = self
            .holder
            .fetch_orchestration_item(lease, POLL, None)
            .await;
        got.expect("it can be fetched").expect("it was sent").1
    }

    async fn hold_task(&self, lease: Duration) -> String {
        schedule(&self.holder, activity("a", 2)).await;
        fetch_work(&self.holder, lease).await.1
    }
}

#[tokio::test]
async fn an_orchestration_that_is_given_back() {
    let scene = Scene::new().await;
    let token = scene.hold_instance(LONG).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch(&scene.waiter, LONG))
        .await;
    let given = scene
        .holder
        .abandon_orchestration_item(&token, None, false)
        .await;
    given.expect("it is held");
    assert_eq!(waiting.await.expect("it is told").2, 2, "attempts");
}

#[tokio::test]
async fn an_orchestration_that_is_given_back_for_later() {
    let scene = Scene::new().await;
    let token = scene.hold_instance(LONG).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch(&scene.waiter, LONG))
        .await;
    let given_ms = now_ms();
    let given = scene
        .holder
        .abandon_orchestration_item(&token, Some(SHORT), true)
        .await;
    given.expect("it is held");
    assert_eq!(waiting.await.expect("it is told").2, 1, "attempts");
    assert!(u128::from(now_ms() - given_ms) >= SHORT.as_millis());
}

#[tokio::test]
async fn an_activity_that_is_given_back() {
    let scene = Scene::new().await;
    let token = scene.hold_task(LONG).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch_work(&scene.waiter, LONG))
        .await;
    let given = scene.holder.abandon_work_item(&token, None, false).await;
    given.expect("it is held");
    assert_eq!(waiting.await.expect("it is told").2, 2, "attempts");
}

#[tokio::test]
async fn an_activity_that_is_given_back_for_later() {
    let scene = Scene::new().await;
    let token = scene.hold_task(LONG).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch_work(&scene.waiter, LONG))
        .await;
    let given_ms = now_ms();
    let given = scene.holder.abandon_work_item(&token, Some(SHORT), true);
    given.await.expect("it is held");
    assert_eq!(waiting.await.expect("it is told").2, 1, "attempts");
    assert!(u128::from(now_ms() - given_ms) >= SHORT.as_millis());
}

#[tokio::test]
async fn an_orchestration_whose_holder_never_came_back() {
    let scene = Scene::new().await;
    scene.hold_instance(SHORT).await;
    let (item, _, attempts) = fetch(&scene.waiter, LONG).await;
    assert_eq!((&*item.instance, attempts), ("a", 2));
}

#[tokio::test]
async fn an_activity_whose_holder_never_came_back() {
    let scene = Scene::new().await;
    scene.hold_task(SHORT).await;
    assert_eq!(fetch_work(&scene.waiter, LONG).await.2, 2, "attempts");
}

/// One waits in each process. Whoever is faster never comes back, and the other, who was woken in
/// vain, gets it then.
#[tokio::test]
async fn a_lease_of_another_process_that_runs_out_while_one_waits() {
    let scene = Scene::new().await;
    let one = parked(&scene.holder, fetch(&scene.holder, SHORT)).await;
    let other = scene
        .ground
        .parked(&scene.waiter, fetch(&scene.waiter, SHORT))
        .await;
    enqueue(&scene.holder, start("a")).await;
    let (_, _, first) = one.await.expect("it is woken");
    let (_, _, second) = other.await.expect("it is woken");
    assert_eq!(first + second, 3, "attempts");

    let one = parked(&scene.holder, fetch_work(&scene.holder, SHORT)).await;
    let other = scene
        .ground
        .parked(&scene.waiter, fetch_work(&scene.waiter, SHORT))
        .await;
    schedule(&scene.holder, activity("a", 2)).await;
    let (_, _, first) = one.await.expect("it is woken");
    let (_, _, second) = other.await.expect("it is woken");
    assert_eq!(first + second, 3, "attempts");
}

/// The holder's own process wakes its others, too.
#[tokio::test]
async fn a_lease_of_this_process_that_runs_out() {
    let ground = Ground::new().await;
    let provider = ground.watched().await;
    ground.settle(&provider).await;
    let first = ground.parked(&provider, fetch(&provider, SHORT)).await;
    let second = ground.parked(&provider, fetch(&provider, LONG)).await;
    enqueue(&provider, start("a")).await;
    assert_eq!(first.await.expect("no panic").2, 1, "attempts");
    assert_eq!(second.await.expect("it is woken").2, 2, "attempts");

    let first = ground.parked(&provider, fetch_work(&provider, SHORT)).await;
    let second = ground.parked(&provider, fetch_work(&provider, LONG)).await;
    schedule(&provider, activity("a", 2)).await;
    assert_eq!(first.await.expect("no panic").2, 1, "attempts");
    assert_eq!(second.await.expect("it is woken").2, 2, "attempts");
}

#[tokio::test]
async fn a_lease_that_was_prolonged_and_then_runs_out() {
    let scene = Scene::new().await;
    let token = scene.hold_task(SHORT).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch_work(&scene.waiter, LONG))
        .await;
    let began = now_ms();
    let prolonged = scene.holder.renew_work_item_lock(&token, SHORT * 2).await;
    prolonged.expect("it is held");
    waiting.await.expect("it is told");
    assert!(u128::from(now_ms() - began) >= (SHORT * 2).as_millis());
}

#[tokio::test]
async fn a_session_that_runs_out() {
    let scene = Scene::new().await;
    let (holder, waiter) = (&scene.holder, &scene.waiter);
    schedule(holder, tagged("a", 2, Some("s"), None)).await;
    let owner = session("holder", SHORT);
    fetch_kind(holder, LONG, Some(owner), TagFilter::DefaultOnly).await;
    let newcomer = session("newcomer", LONG);
    let fetching = fetch_kind(waiter, LONG, Some(newcomer), TagFilter::DefaultOnly);
    let waiting = scene.ground.parked(waiter, fetching).await;
    // Of the session that another has.
    schedule(holder, tagged("a", 3, Some("s"), None)).await;
    let (item, ..) = waiting.await.expect("it is woken");
    assert_eq!(item, tagged("a", 3, Some("s"), None));
}

/// What comes while an instance is held by another process waits for the end of its turn.
#[tokio::test]
async fn an_instance_that_another_process_has_finished_with() {
    let scene = Scene::new().await;
    let token = scene.hold_instance(LONG).await;
    let waiting = scene
        .ground
        .parked(&scene.waiter, fetch(&scene.waiter, LONG))
        .await;
    let due = timer("a", 2, Duration::ZERO).0;
    enqueue(&scene.waiter, due.clone()).await;
    let turn = Turn {
        events: vec![started("a")],
        metadata: named(),
        ..Turn::default()
    };
    end_turn(&scene.holder, &token, turn).await;
    let (item, ..) = waiting.await.expect("it is told");
    assert_eq!(item.messages, [due]);
    assert_eq!(item.history.len(), 1);
}

#[tokio::test]
async fn eight_children_wake_eight_dispatchers() {
    let scene = Scene::new().await;
    let token = scene.hold_instance(LONG).await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(
            scene
                .ground
                .parked(&scene.waiter, fetch(&scene.waiter, LONG))
                .await,
        );
    }
    let turn = Turn {
        events: vec![started("a")],
        messages: (0..8).map(|n| start(&format!("child {n}"))).collect(),
        metadata: named(),
        ..Turn::default()
    };
    end_turn(&scene.holder, &token, turn).await;
    let mut instances = std::collections::BTreeSet::new();
    for one in waiting {
        instances.insert(one.await.expect("it is woken").0.instance);
    }
    assert_eq!(instances.len(), 8);
}

#[tokio::test]
async fn eight_activities_wake_eight_workers() {
    let scene = Scene::new().await;
    let token = scene.hold_instance(LONG).await;
    let mut waiting = Vec::new();
    for number in 0..8 {
        let owner = session(&format!("worker {number}"), LONG);
        let fetching = fetch_kind(&scene.waiter, LONG, Some(owner), TagFilter::DefaultOnly);
        waiting.push(scene.ground.parked(&scene.waiter, fetching).await);
    }
    let turn = Turn {
        events: vec![started("a")],
        activities: (2..10).map(|id| activity("a", id)).collect(),
        metadata: named(),
        ..Turn::default()
    };
    end_turn(&scene.holder, &token, turn).await;
    for one in waiting {
        one.await.expect("it is woken");
    }
}

/// Whoever waited leaves when its item has been taken, and nobody has to wait for its lease to end.
#[tokio::test]
async fn a_fetch_that_is_dropped_gives_its_item_back() {
    let scene = Scene::new().await;
    let (ground, provider) = (&scene.ground, &scene.waiter);
    // All its connections are there before answers are held up.
    for _ in 0..8 {
        assert!(fetch_now(provider).await.is_none());
        assert!(fetch_work_now(provider).await.is_none());
    }
    for name in ["take_instances", "take_tasks"] {
        if name == "take_instances" {
            enqueue(&scene.holder, start("a")).await;
        } else {
            schedule(&scene.holder, activity("a", 2)).await;
        }
        // Its answer does not come before the fetch has gone.
        let before = ground.proxy.count(name);
        ground.proxy.hold_up();
        let fetcher = provider.clone();
        let fetching = tokio::spawn(async move {
            if name == "take_instances" {
                fetch_now(&fetcher).await.map(|got| got.1)
            } else {
                fetch_work_now(&fetcher).await.map(|got| got.1)
            }
        });
        until("it asks", async || ground.proxy.count(name) > before).await;
        let taken = "SELECT (SELECT count(*) FROM @schema@.mailbox WHERE token IS NOT NULL)
             + (SELECT count(*) FROM @schema@.task WHERE token IS NOT NULL)";
        until("it is taken", async || ground.number(taken).await == 1).await;
        fetching.abort();
        assert!(fetching.await.is_err_and(|error| error.is_cancelled()));
        ground.proxy.go_on();
        let mut attempts = None;
        until("it is given back", async || {
            attempts = if name == "take_instances" {
                fetch_now(&scene.holder).await.map(|got| (got.1, got.2))
            } else {
                fetch_work_now(&scene.holder)
                    .await
                    .map(|got| (got.1, got.2))
            };
            attempts.is_some()
        })
        .await;
        let (token, attempts) = attempts.expect("it was fetched");
        assert_eq!(attempts, 1, "a fetch that nobody saw is no attempt");
        if name == "take_instances" {
            let turn = Turn {
                events: vec![started("a")],
                metadata: named(),
                ..Turn::default()
            };
            end_turn(&scene.holder, &token, turn).await;
        }
    }
}
