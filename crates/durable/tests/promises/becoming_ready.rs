//! Everything that makes an item ready wakes a waiter of another process, not only a new item.

use std::{collections::BTreeSet, time::Duration};

use duroxide::providers::{Provider, TagFilter};
use tokio::task::JoinHandle;
use wakeline_durable::PostgresProvider;

use crate::fixture::*;

const SHORT: Duration = Duration::from_millis(800);

/// A provider that leases items, and one of another process whose fetches wait.
struct Processes {
    fixture: Fixture,
    holder: PostgresProvider,
    waiter: PostgresProvider,
}

impl Processes {
    async fn new() -> Self {
        let (fixture, waiter, holder) = Fixture::live_pair().await;
        Self {
            fixture,
            holder,
            waiter,
        }
    }

    async fn lease_instance(&self, lease: Duration) -> String {
        enqueue(&self.holder, start("a")).await;
        fetch(&self.holder, lease).await.1
    }

    async fn lease_activity(&self, lease: Duration) -> String {
        schedule(&self.holder, activity("a", 2)).await;
        fetch_activity(&self.holder, lease).await.1
    }

    async fn dispatcher(&self, lease: Duration) -> JoinHandle<Orchestration> {
        let fetching = fetch(&self.waiter, lease);
        self.fixture.parked(&self.waiter, fetching).await
    }

    async fn worker(&self, lease: Duration) -> JoinHandle<Activity> {
        let fetching = fetch_activity(&self.waiter, lease);
        self.fixture.parked(&self.waiter, fetching).await
    }
}

/// The attempts of the item that `waiting` fetches, not before `delay`.
async fn attempts<T>(waiting: JoinHandle<(T, String, u32)>, delay: Duration, began_ms: u64) -> u32 {
    let attempts = waiting.await.expect("it is woken").2;
    assert!(u128::from(now_ms() - began_ms) >= delay.as_millis());
    attempts
}

/// Released as an attempt at once, and not as one after a delay.
const RELEASES: [(Option<Duration>, bool, u32); 2] = [(None, false, 2), (Some(SHORT), true, 1)];

#[tokio::test]
async fn a_released_orchestration_wakes_a_dispatcher_at_once_or_after_its_delay() {
    for (delay, ignore_attempt, expected) in RELEASES {
        let processes = Processes::new().await;
        let token = processes.lease_instance(LONG).await;
        let waiting = processes.dispatcher(LONG).await;
        let began_ms = now_ms();
        let holder = &processes.holder;
        let released = holder.abandon_orchestration_item(&token, delay, ignore_attempt);
        released.await.expect("it is held");
        let attempts = attempts(waiting, delay.unwrap_or_default(), began_ms).await;
        assert_eq!(attempts, expected);
    }
}

#[tokio::test]
async fn a_released_activity_wakes_a_worker_at_once_or_after_its_delay() {
    for (delay, ignore_attempt, expected) in RELEASES {
        let processes = Processes::new().await;
        let token = processes.lease_activity(LONG).await;
        let waiting = processes.worker(LONG).await;
        let began_ms = now_ms();
        let holder = &processes.holder;
        let released = holder.abandon_work_item(&token, delay, ignore_attempt);
        released.await.expect("it is held");
        let attempts = attempts(waiting, delay.unwrap_or_default(), began_ms).await;
        assert_eq!(attempts, expected);
    }
}

#[tokio::test]
async fn items_of_a_vanished_holder_are_fetched_after_their_lease() {
    let processes = Processes::new().await;
    processes.lease_instance(SHORT).await;
    let (item, _, attempts) = fetch(&processes.waiter, LONG).await;
    assert_eq!((&*item.instance, attempts), ("a", 2));

    processes.lease_activity(SHORT).await;
    assert_eq!(
        fetch_activity(&processes.waiter, LONG).await.2,
        2,
        "attempts"
    );
}

/// One dispatcher waits in each process. The faster one never comes back, and the other, which was
/// woken in vain, gets the item then.
#[tokio::test]
async fn an_expired_lease_of_another_process_wakes_a_waiting_dispatcher() {
    let processes = Processes::new().await;
    let holder = &processes.holder;
    let one = parked(holder, fetch(holder, SHORT)).await;
    let other = processes.dispatcher(SHORT).await;
    enqueue(holder, start("a")).await;
    let (_, _, first) = one.await.expect("it is woken");
    let (_, _, second) = other.await.expect("it is woken");
    assert_eq!(first + second, 3, "attempts");

    let one = parked(holder, fetch_activity(holder, SHORT)).await;
    let other = processes.worker(SHORT).await;
    schedule(holder, activity("a", 2)).await;
    let (_, _, first) = one.await.expect("it is woken");
    let (_, _, second) = other.await.expect("it is woken");
    assert_eq!(first + second, 3, "attempts");
}

/// The holder's own process wakes its other dispatchers too.
#[tokio::test]
async fn an_expired_lease_of_its_own_process_wakes_a_waiting_dispatcher() {
    let processes = Processes::new().await;
    let provider = &processes.waiter;
    let first = processes.dispatcher(SHORT).await;
    let second = processes.dispatcher(LONG).await;
    enqueue(provider, start("a")).await;
    assert_eq!(first.await.expect("no panic").2, 1, "attempts");
    assert_eq!(second.await.expect("it is woken").2, 2, "attempts");

    let first = processes.worker(SHORT).await;
    let second = processes.worker(LONG).await;
    schedule(provider, activity("a", 2)).await;
    assert_eq!(first.await.expect("no panic").2, 1, "attempts");
    assert_eq!(second.await.expect("it is woken").2, 2, "attempts");
}

#[tokio::test]
async fn a_renewed_lease_wakes_a_dispatcher_when_it_expires() {
    let processes = Processes::new().await;
    let token = processes.lease_activity(SHORT).await;
    let waiting = processes.worker(LONG).await;
    let began_ms = now_ms();
    let renewed = processes.holder.renew_work_item_lock(&token, SHORT * 2);
    renewed.await.expect("it is held");
    attempts(waiting, SHORT * 2, began_ms).await;
}

#[tokio::test]
async fn an_expired_session_wakes_a_worker_for_its_activities() {
    let processes = Processes::new().await;
    let (holder, waiter) = (&processes.holder, &processes.waiter);
    schedule(holder, tagged("a", 2, Some("s"), None)).await;
    let owner = session("holder", SHORT);
    fetch_activity_of(holder, LONG, Some(owner), TagFilter::DefaultOnly).await;
    let newcomer = session("newcomer", LONG);
    let fetching = fetch_activity_of(waiter, LONG, Some(newcomer), TagFilter::DefaultOnly);
    let waiting = processes.fixture.parked(waiter, fetching).await;
    schedule(holder, tagged("a", 3, Some("s"), None)).await;
    let (item, ..) = waiting.await.expect("it is woken");
    assert_eq!(item, tagged("a", 3, Some("s"), None));
}

/// A message for an instance that another process has leased waits for the end of its turn.
#[tokio::test]
async fn the_end_of_a_turn_in_another_process_wakes_a_dispatcher_for_its_next_message() {
    let processes = Processes::new().await;
    let token = processes.lease_instance(LONG).await;
    let waiting = processes.dispatcher(LONG).await;
    let due = timer("a", 2, Duration::ZERO).0;
    enqueue(&processes.waiter, due.clone()).await;
    end_turn(&processes.holder, &token, first_turn("a")).await;
    let (item, ..) = waiting.await.expect("it is woken");
    assert_eq!(item.messages, [due]);
    assert_eq!(item.history.len(), 1);
}

#[tokio::test]
async fn eight_children_wake_eight_dispatchers() {
    let processes = Processes::new().await;
    let token = processes.lease_instance(LONG).await;
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(processes.dispatcher(LONG).await);
    }
    let turn = Turn {
        messages: (0..8).map(|n| start(&format!("child {n}"))).collect(),
        ..first_turn("a")
    };
    end_turn(&processes.holder, &token, turn).await;
    let mut instances = BTreeSet::new();
    for dispatcher in waiting {
        instances.insert(dispatcher.await.expect("it is woken").0.instance);
    }
    assert_eq!(instances.len(), 8);
}

#[tokio::test]
async fn eight_activities_wake_eight_workers() {
    let processes = Processes::new().await;
    let waiter = &processes.waiter;
    let token = processes.lease_instance(LONG).await;
    let mut waiting = Vec::new();
    for number in 0..8 {
        let owner = session(&format!("worker {number}"), LONG);
        let fetching = fetch_activity_of(waiter, LONG, Some(owner), TagFilter::DefaultOnly);
        waiting.push(processes.fixture.parked(waiter, fetching).await);
    }
    let turn = Turn {
        activities: (2..10).map(|id| activity("a", id)).collect(),
        ..first_turn("a")
    };
    end_turn(&processes.holder, &token, turn).await;
    for worker in waiting {
        worker.await.expect("it is woken");
    }
}

/// A fetch is dropped while its answer is under way: the item need not wait for its lease to expire.
#[tokio::test]
async fn a_dropped_fetch_does_not_count_as_an_attempt() {
    let processes = Processes::new().await;
    let (fixture, holder) = (&processes.fixture, &processes.holder);
    // Makes all connections before answers are paused.
    for _ in 0..8 {
        assert!(fetch_now(&processes.waiter).await.is_none());
        assert!(fetch_activity_now(&processes.waiter).await.is_none());
    }
    for name in ["fetch_instances", "fetch_activities"] {
        let is_instance = name == "fetch_instances";
        if is_instance {
            enqueue(holder, start("a")).await;
        } else {
            schedule(holder, activity("a", 2)).await;
        }
        let fetch = async |provider: PostgresProvider| {
            if is_instance {
                fetch_now(&provider).await.map(|got| (got.1, got.2))
            } else {
                fetch_activity_now(&provider)
                    .await
                    .map(|got| (got.1, got.2))
            }
        };
        let before = fixture.proxy.count(name);
        fixture.proxy.pause_answers();
        {
            let fetching = fetch(processes.waiter.clone());
            tokio::pin!(fetching);
            let leased = async {
                until("it asks", async || fixture.proxy.count(name) > before).await;
                let leases =
                    "SELECT (SELECT count(*) FROM @schema@.mailbox WHERE token IS NOT NULL)
                     + (SELECT count(*) FROM @schema@.activity WHERE token IS NOT NULL)";
                until("it is leased", async || fixture.number(leases).await == 1).await;
            };
            tokio::select! {
                _ = &mut fetching => panic!("the answer is paused"),
                () = leased => {}
            }
        }
        fixture.proxy.resume_answers();
        let mut fetched = None;
        until("it is released", async || {
            fetched = fetch(holder.clone()).await;
            fetched.is_some()
        })
        .await;
        let (token, attempts) = fetched.expect("it was fetched");
        assert_eq!(attempts, 1);
        if is_instance {
            end_turn(holder, &token, first_turn("a")).await;
        }
    }
}
