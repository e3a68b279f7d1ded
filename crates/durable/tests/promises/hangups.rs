//! A committed write has woken its waiters even if the runtime dropped the call: each call that can
//! make something ready is dropped while its statement is blocked, and a waiter of another process
//! hears of it. Deleting, pruning, renewing and removing sessions make nothing ready.

use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};
use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::timeout;
use tokio_postgres::Client;
use wakeline_durable::PostgresProvider;

use crate::fixture::*;

/// So rare that only the wake of the write itself can have ended a wait.
const NO_FALLBACK: Duration = Duration::from_secs(3_600);
const HEARD_WITHIN: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_millis(500);

const CASES: [&str; 19] = [
    "enqueue_for_orchestrator",
    "enqueue_for_orchestrator with a delay",
    "enqueue_for_orchestrator of a timer",
    "enqueue_for_orchestrator of a cancellation",
    "enqueue_for_worker",
    "ack_orchestration_item with a message",
    "ack_orchestration_item with an activity",
    "ack_orchestration_item with a timer",
    "ack_orchestration_item while another message waits",
    "ack_orchestration_item that ends the orchestration",
    "ack_work_item",
    "abandon_orchestration_item",
    "abandon_orchestration_item with a delay",
    "abandon_work_item",
    "abandon_work_item with a delay",
    "append_with_execution",
    "fetch_orchestration_item",
    "fetch_work_item",
    "fetch_work_item of an unreadable activity",
];

struct Case {
    /// The SQL function that the call is blocked in.
    function: &'static str,
    call: BoxFuture<'static, ()>,
    wait: BoxFuture<'static, ()>,
    /// What the call makes ready is ready after this.
    delay: Duration,
    /// The call fetches the item: only a wait that begins after the fetch is for its release.
    is_fetch: bool,
}

fn case(
    function: &'static str,
    call: BoxFuture<'static, ()>,
    wait: BoxFuture<'static, ()>,
) -> Case {
    Case {
        function,
        call,
        wait,
        delay: Duration::ZERO,
        is_fetch: false,
    }
}

/// Both for the instance `name`, which no other case has.
async fn prepare(
    name: &'static str,
    fixture: &Fixture,
    caller: &PostgresProvider,
    waiter: &PostgresProvider,
) -> Case {
    let dispatcher = fetch(waiter, LONG).map(drop).boxed();
    let worker = fetch_activity(waiter, LONG).map(drop).boxed();
    let client = waiter.clone();
    let client = async move {
        let ended = client.wait_for_orchestration(name, POLL).await;
        ended.expect("the orchestration ends");
    };
    let (variant, delay) = match name.split_once(" with a delay") {
        Some((call, _)) => (call, Some(DELAY)),
        None => (name, None),
    };
    let caller = caller.clone();
    let case = match variant {
        "enqueue_for_orchestrator" => {
            let call = async move {
                let sent = caller.enqueue_for_orchestrator(start(name), delay).await;
                sent.expect("it can be sent");
            };
            case("apply_changes", call.boxed(), dispatcher)
        }
        "enqueue_for_orchestrator of a timer" => {
            begin(&caller, name).await;
            let call = async move { enqueue(&caller, timer(name, 2, DELAY).0).await };
            Case {
                delay: DELAY,
                ..case("apply_changes", call.boxed(), dispatcher)
            }
        }
        "enqueue_for_orchestrator of a cancellation" => {
            begin(&caller, name).await;
            let cancel = WorkItem::CancelInstance {
                instance: name.into(),
                reason: "".into(),
            };
            let call = async move { enqueue(&caller, cancel).await };
            case("apply_changes", call.boxed(), dispatcher)
        }
        "enqueue_for_worker" => {
            let call = async move { schedule(&caller, activity(name, 2)).await };
            case("apply_changes", call.boxed(), worker)
        }
        "ack_orchestration_item with a message" => {
            let mut turn = first_turn(name);
            turn.messages.push(start("child"));
            let call = ack_turn(&caller, name, turn).await;
            case("apply_changes", call, dispatcher)
        }
        "ack_orchestration_item with an activity" => {
            let mut turn = first_turn(name);
            turn.activities.push(activity(name, 2));
            let call = ack_turn(&caller, name, turn).await;
            case("apply_changes", call, worker)
        }
        "ack_orchestration_item with a timer" => {
            let mut turn = first_turn(name);
            turn.messages.push(timer(name, 2, DELAY).0);
            let call = ack_turn(&caller, name, turn).await;
            Case {
                delay: DELAY,
                ..case("apply_changes", call, dispatcher)
            }
        }
        "ack_orchestration_item while another message waits" => {
            let call = ack_turn(&caller, name, first_turn(name)).await;
            enqueue(&caller, timer(name, 2, Duration::ZERO).0).await;
            case("apply_changes", call, dispatcher)
        }
        "ack_orchestration_item that ends the orchestration" => {
            let call = ack_turn(&caller, name, last_turn(name, "")).await;
            case("apply_changes", call, client.boxed())
        }
        "ack_work_item" => {
            begin(&caller, name).await;
            schedule(&caller, activity(name, 2)).await;
            let (_, token, _) = fetch_activity(&caller, LONG).await;
            let completion = WorkItem::ActivityCompleted {
                instance: name.into(),
                execution_id: 1,
                id: 2,
                result: "".into(),
            };
            let call = async move {
                let ended = caller.ack_work_item(&token, Some(completion)).await;
                ended.expect("the lease is held");
            };
            case("apply_changes", call.boxed(), dispatcher)
        }
        "abandon_orchestration_item" => {
            enqueue(&caller, start(name)).await;
            let (_, token, _) = fetch_now(&caller).await.expect("it was sent");
            let call = async move {
                let released = caller.abandon_orchestration_item(&token, delay, true).await;
                released.expect("the lease is held");
            };
            case("release_instance", call.boxed(), dispatcher)
        }
        "abandon_work_item" => {
            schedule(&caller, activity(name, 2)).await;
            let (_, token, _) = fetch_activity(&caller, LONG).await;
            let call = async move {
                let released = caller.abandon_work_item(&token, delay, true).await;
                released.expect("the lease is held");
            };
            case("release_activity", call.boxed(), worker)
        }
        "append_with_execution" => {
            begin(&caller, name).await;
            let call = async move {
                let events = vec![event(name, 2, completed(""))];
                let appended = caller.append_with_execution(name, 1, events).await;
                appended.expect("it can be appended");
            };
            case("append_events", call.boxed(), client.boxed())
        }
        "fetch_orchestration_item" => {
            enqueue(&caller, start(name)).await;
            let call = async move { drop(fetch_now(&caller).await) };
            Case {
                is_fetch: true,
                ..case("fetch_instances", call.boxed(), dispatcher)
            }
        }
        "fetch_work_item" => {
            schedule(&caller, activity(name, 2)).await;
            let call = async move { drop(fetch_activity_now(&caller).await) };
            Case {
                is_fetch: true,
                ..case("fetch_activities", call.boxed(), worker)
            }
        }
        "fetch_work_item of an unreadable activity" => {
            begin(&caller, name).await;
            schedule(&caller, activity(name, 2)).await;
            let spoil = "UPDATE @schema@.activity SET item = '' WHERE token IS NULL";
            fixture.sql(spoil).await;
            let call = async move { drop(fetch_activity_now(&caller).await) };
            case("fetch_activities", call.boxed(), dispatcher)
        }
        other => unreachable!("{other} has no case"),
    };
    Case {
        delay: delay.unwrap_or(case.delay),
        ..case
    }
}

/// Leases a new instance; the call acknowledges its first turn.
async fn ack_turn(caller: &PostgresProvider, name: &str, turn: Turn) -> BoxFuture<'static, ()> {
    enqueue(caller, start(name)).await;
    let (_, token, _) = fetch_now(caller).await.expect("it was sent");
    let caller = caller.clone();
    async move { end_turn(&caller, &token, turn).await }.boxed()
}

/// Blocks writes, and not the row locks of a fetch that finds nothing: a waiter that an earlier wake
/// has made ask again must not get its answer from the end of the block.
struct WriteBlock {
    locker: Client,
}

impl WriteBlock {
    async fn new(fixture: &Fixture) -> Self {
        let locker = fixture.client().await;
        let tables = ["mailbox", "message", "activity", "event"];
        let tables = tables.map(|table| format!("{SCHEMA}.{table}")).join(", ");
        let lock = format!("BEGIN; LOCK TABLE {tables} IN SHARE MODE");
        locker.batch_execute(&lock).await.expect("it is free");
        Self { locker }
    }

    async fn until_blocked(&self, function: &str) {
        let blocked = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                 AND wait_event_type = 'Lock' AND strpos(query, '.{function}(') > 0"
        );
        until("the statement is blocked", async || {
            // A transaction sees the activity as it was when it first asked.
            let forget = self.locker.batch_execute("SELECT pg_stat_clear_snapshot()");
            forget.await.expect("it answers");
            let row = self.locker.query_one(&blocked, &[]).await;
            row.expect("it answers").get::<_, i64>(0) > 0
        })
        .await;
    }

    async fn end(self) {
        self.locker.batch_execute("COMMIT").await.expect("released");
    }
}

#[tokio::test]
async fn every_dropped_call_wakes_a_waiter_of_another_process() {
    let fixture = Fixture::new().await;
    let waiter = fixture.proxied_with(with_fallback(NO_FALLBACK)).await;
    let caller = fixture.direct().await;
    fixture.until_live(&waiter).await;
    for name in CASES {
        let case = prepare(name, &fixture, &caller, &waiter).await;
        let (mut waiting, mut wait) = (None, Some(case.wait));
        if !case.is_fetch {
            waiting = Some(fixture.parked(&waiter, wait.take().expect("once")).await);
        }
        let block = WriteBlock::new(&fixture).await;
        let call = tokio::spawn(case.call);
        block.until_blocked(case.function).await;
        if let Some(wait) = wait {
            waiting = Some(fixture.parked(&waiter, wait).await);
        }
        let waiting = waiting.expect("it waits in either case");
        call.abort();
        assert!(call.await.is_err_and(|error| error.is_cancelled()));
        assert!(!waiting.is_finished(), "{name}: nothing is committed yet");
        block.end().await;
        let heard = timeout(case.delay + HEARD_WITHIN, waiting).await;
        let heard = heard.unwrap_or_else(|_| panic!("{name}: the waiter heard nothing"));
        heard.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Calls that come while the first is blocked share a statement, whose wakes are counted together.
#[tokio::test]
async fn dropped_calls_of_one_batch_wake_a_waiter_each() {
    let (fixture, waiter, caller) = Fixture::live_pair().await;
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(fixture.parked(&waiter, fetch(&waiter, LONG)).await);
    }
    let block = WriteBlock::new(&fixture).await;
    let calls = ["a", "b", "c", "d"].map(|name| {
        let caller = caller.clone();
        tokio::spawn(async move { enqueue(&caller, start(name)).await })
    });
    block.until_blocked("apply_changes").await;
    for call in calls {
        call.abort();
        assert!(call.await.is_err_and(|error| error.is_cancelled()));
    }
    block.end().await;
    let mut fetched = Vec::new();
    for wait in waiting {
        fetched.push(wait.await.expect("it is woken").0.instance);
    }
    fetched.sort();
    assert_eq!(fetched, ["a", "b", "c", "d"]);
}
