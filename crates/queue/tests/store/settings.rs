//! The options of a queue.

use std::time::Duration;

use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    message::PushRefusal,
    options::Options,
};
use wakeline_testkit::CommitAlone;
use wakeline_wake::Cause;

use crate::{
    calls::{
        DEAD, GOES_ON, HOUR, LEASE, RELEASED, ack_all, ack_of, assert_about, complete,
        configuration, configure, fail, from, make_dead, message, names, part, push, retry,
        try_push,
    },
    http_calls::Routes,
    test_door::{TestDoor, acknowledge, answer},
    test_store::TestStore,
};

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

pub(crate) async fn with_no_retries_the_first_failure_makes_a_dead_letter(store: TestStore) {
    configure(&*store, "q", |options| options.retry_limit = 0).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(fail(&*store, &claimed, "a").await, DEAD);
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["b"]);
    // A retry does not count, however low the limit is.
    assert_eq!(retry(&*store, &claimed, "b").await, RELEASED);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn a_message_that_fails_too_often_is_dropped_where_dead_letters_are_not_kept(
    store: TestStore,
) {
    configure(&*store, "q", |options| {
        options.retry_limit = 1;
        options.keeps_dead_letters = false;
    })
    .await;
    push(&*store, "q", "p", &["a", "b"]).await;
    // The second failure drops it.
    for _ in 0..2 {
        let claimed = from("q").claim(&*store).await;
        assert_eq!(fail(&*store, &claimed, "a").await, RELEASED);
    }
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    // With the status of a dead letter it is kept all the same.
    let claimed = from("q").claim(&*store).await;
    assert_eq!(make_dead(&*store, &claimed, "b").await, DEAD);
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
}

pub(crate) async fn a_failure_in_a_batch_delays_the_partition(store: TestStore) {
    configure(&*store, "q", |options| {
        options.retry_delay_ms = ms(MINUTE);
        options.retry_limit = 1;
    })
    .await;
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    push(&*store, "q", "p2", &["d"]).await;
    let claimed = from("q").partition("p").batch(3).claim(&*store).await;
    let said = [
        ("a", AckStatus::Completed),
        ("b", AckStatus::Failed),
        ("c", AckStatus::Completed),
    ];
    let said = said.map(|(name, status)| ack_of(&claimed, name, status));
    ack_all(&*store, said.to_vec()).await;
    assert_about(from("q").partition("p").nothing(&*store).await, MINUTE);
    // Only that partition waits.
    assert_eq!(names(&from("q").auto_ack().claim(&*store).await), ["d"]);
    // A message that is pushed meanwhile waits with it.
    push(&*store, "q", "p", &["e"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE);
    store.pass(MINUTE).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["b", "c", "e"]);
    // A dead message delays nothing.
    assert_eq!(fail(&*store, &claimed, "b").await, DEAD);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c", "e"]);
}

pub(crate) async fn a_delayed_message_is_delivered_when_it_is_due(store: TestStore) {
    configure(&*store, "q", |options| options.delay_ms = ms(MINUTE)).await;
    push(&*store, "q", "p", &["a"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE);
    assert_about(from("q").partition("p").nothing(&*store).await, MINUTE);
    store.pass_for_all(MINUTE / 2).await;
    push(&*store, "q", "p", &["b"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE / 2);
    store.pass_for_all(MINUTE / 2).await;
    let auto = from("q").batch(9).auto_ack();
    assert_eq!(names(&auto.claim(&*store).await), ["a"]);
    assert_about(auto.nothing(&*store).await, MINUTE / 2);
    store.pass_for_all(MINUTE / 2).await;
    assert_eq!(names(&auto.claim(&*store).await), ["b"]);
    // A group that had caught up waits too.
    push(&*store, "q", "p", &["c"]).await;
    assert_about(auto.nothing(&*store).await, MINUTE);
}

pub(crate) async fn a_shorter_delay_applies_to_stored_messages(store: TestStore) {
    configure(&*store, "q", |options| options.delay_ms = ms(HOUR)).await;
    push(&*store, "q", "p", &["a"]).await;
    assert_about(from("q").nothing(&*store).await, HOUR);
    configure(&*store, "q", |_| {}).await;
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["a"]);
}

pub(crate) async fn a_window_collects_messages_until_the_pushes_pause(store: TestStore) {
    configure(&*store, "q", |options| options.window_ms = ms(MINUTE)).await;
    push(&*store, "q", "p", &["a"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE);
    store.pass_for_all(MINUTE / 2).await;
    push(&*store, "q", "p", &["b"]).await;
    store.pass_for_all(MINUTE / 2).await;
    assert_about(from("q").nothing(&*store).await, MINUTE / 2);
    store.pass_for_all(MINUTE / 2).await;
    let claimed = from("q").batch(9).claim_soon(&*store).await;
    assert_eq!(names(&claimed), ["a", "b"]);
}

/// A partition whose window never ends must not hold up one whose window has ended.
pub(crate) async fn a_partition_within_its_window_does_not_hold_up_another(store: TestStore) {
    configure(&*store, "q", |options| options.window_ms = ms(MINUTE)).await;
    push(&*store, "q", "busy", &["a"]).await;
    store.pass_for_all(SECOND).await;
    push(&*store, "q", "calm", &["b"]).await;
    // The group knows both.
    from("q").partition("none").nothing(&*store).await;
    store.pass_for_all(MINUTE).await;
    push(&*store, "q", "busy", &["c"]).await;
    store.pass_for_all(SECOND).await;
    let claimed = from("q").batch(9).claim_soon(&*store).await;
    assert_eq!(part(&claimed).partition, "calm");
    assert_about(from("q").nothing(&*store).await, MINUTE);
}

async fn timer_wakes(store: TestStore, change: impl FnOnce(&mut Options)) {
    let door = TestDoor::open(&store).await;
    configure(&*store, "q", change).await;
    let first = door.parked(from("q")).await;
    door.push(&["p"], "a").await;
    let (claim, woken_by) = answer(first).await;
    assert_eq!(names(claim.claim()), ["a"]);
    assert_eq!(woken_by, Some(Cause::Timer));
}

pub(crate) async fn a_waiter_is_woken_when_a_delay_is_over(store: TestStore) {
    timer_wakes(store, |options| options.delay_ms = 400).await;
}

pub(crate) async fn a_waiter_is_woken_when_a_window_is_over(store: TestStore) {
    timer_wakes(store, |options| options.window_ms = 400).await;
}

pub(crate) async fn a_waiter_is_woken_when_a_retry_is_due(store: TestStore) {
    let door = TestDoor::open(&store).await;
    configure(&*store, "q", |options| options.retry_delay_ms = 400).await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let waiting = door.parked(from("q")).await;
    acknowledge(&door.queue, ack_of(&claimed, "a", AckStatus::Failed)).await;
    let (claim, woken_by) = answer(waiting).await;
    assert_eq!(names(claim.claim()), ["a"]);
    assert_eq!(woken_by, Some(Cause::Timer));
}

pub(crate) async fn a_full_queue_refuses_pushes(store: TestStore) {
    configure(&*store, "q", |options| options.max_size = 3).await;
    let sent = [
        ("p1", "a"),
        ("p2", "b"),
        ("p1", "c"),
        ("p1", "d"),
        ("p1", "a"),
    ];
    let sent = sent.map(|(partition, name)| message("q", partition, name));
    let pushed = try_push(&*store, sent.to_vec()).await.pushed;
    let full = PushRefusal::Full { max_size: 3 };
    assert_eq!(pushed[3], Err(full));
    // A stored message can be pushed again.
    let duplicates = pushed.iter().flatten().map(|pushed| pushed.duplicate);
    assert!(duplicates.eq([false, false, false, true]));
    // The slowest group counts.
    let fast = from("q").group("fast").auto_ack().batch(9).partitions(9);
    fast.claim(&*store).await;
    let slow = from("q").group("slow").partition("p1").batch(2);
    let slow = slow.claim(&*store).await;
    let one_more = || try_push(&*store, vec![message("q", "p1", "d")]);
    assert_eq!(one_more().await.pushed, [Err(full)]);
    complete(&*store, &slow, "a").await;
    assert!(one_more().await.pushed[0].is_ok());
    let more = try_push(&*store, vec![message("q", "p3", "e")]).await;
    assert_eq!(more.pushed, [Err(full)]);
    // Another queue is another matter.
    push(&*store, "r", "p", &["x", "y", "z", "u"]).await;
}

pub(crate) async fn a_message_over_the_maximum_age_is_not_delivered(store: TestStore) {
    configure(&*store, "q", |options| {
        options.max_age_ms = Some(ms(MINUTE));
    })
    .await;
    push(&*store, "q", "p", &["a", "b"]).await;
    store.pass_for_all(MINUTE / 2).await;
    push(&*store, "q", "p", &["c"]).await;
    let claimed = from("q").group("early").batch(2).claim(&*store).await;
    store.pass_for_all(MINUTE / 2 + SECOND).await;
    let fresh = from("q").batch(9).auto_ack().claim(&*store).await;
    assert_eq!(names(&fresh), ["c"]);
    store.pass_for_all(MINUTE).await;
    assert_eq!(from("q").group("late").nothing(&*store).await, None);
    // A consumer that got it in time may acknowledge it, if its lease is valid.
    let late = complete(&*store, &claimed, "a").await;
    assert_eq!(late, AckOutcome::LeaseLost);
    push(&*store, "q", "p", &["d"]).await;
    let claimed = from("q").group("early").batch(9).claim_soon(&*store).await;
    assert_eq!(names(&claimed), ["d"]);
}

pub(crate) async fn an_omitted_option_is_reset_to_its_default(store: TestStore) {
    configure(&*store, "q", |options| {
        options.lease_ms = Some(ms(HOUR));
        options.retry_limit = 0;
        options.max_size = 1;
    })
    .await;
    configure(&*store, "q", |_| {}).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(claimed.time, Some(LEASE));
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
    assert_eq!(fail(&*store, &claimed, "b").await, RELEASED);
}

/// On PostgreSQL the columns have the defaults of `options.rs` once more: they must agree.
pub(crate) async fn a_queue_without_configuration_has_the_default_options(store: TestStore) {
    push(&*store, "pushed", "p", &["a"]).await;
    configure(&*store, "configured", |_| {}).await;
    let kinds = "SELECT count(*), CAST(sum(o.queues) AS bigint) FROM (
         SELECT count(*) AS queues FROM queue GROUP BY lease_ms, retry_limit, retry_delay_ms,
             keeps_dead_letters, priority, delay_ms, window_ms, max_size, max_age_ms, age_limits_waiting, completed_retention_ms,
             is_sealed) o";
    assert_eq!(store.database.pairs(kinds).await, [(1, 2)]);
}

async fn configured(routes: &Routes, body: Value) -> Value {
    let answer = routes.post("/api/v1/configure", &body).await;
    let options = &answer["options"];
    json!(["leaseTime", "retryLimit", "ttl", "deadLetterQueue"].map(|name| options[name].clone()))
}

pub(crate) async fn an_option_that_is_not_named_keeps_its_value(store: TestStore) {
    let routes = Routes::of(store.queue());
    let change = |options: Value| json!({"queue": "q", "options": options});
    let set = change(json!({"leaseTime": 7, "ttl": 50, "deadLetterQueue": false}));
    assert_eq!(configured(&routes, set).await, json!([7, 3, 50, false]));
    let other = change(json!({"retryLimit": 1}));
    assert_eq!(configured(&routes, other).await, json!([7, 1, 50, false]));
    let restored = change(json!({"leaseTime": null, "deadLetterQueue": null}));
    assert_eq!(
        configured(&routes, restored).await,
        json!([300, 1, 50, true])
    );
    assert_eq!(
        configured(&routes, json!({"queue": "q"})).await,
        json!([300, 1, 50, true])
    );
    // It counts too, and is not only shown.
    push(&*store, "q", "p", &["a"]).await;
    for expected in [RELEASED, DEAD] {
        let claimed = from("q").claim(&*store).await;
        assert_eq!(fail(&*store, &claimed, "a").await, expected);
    }
    let mut replaced = change(json!({"ttl": 9}));
    replaced["mode"] = json!("replace");
    assert_eq!(
        configured(&routes, replaced).await,
        json!([300, 3, 9, true])
    );
    let shown = routes.get("/api/v1/status/queues/q").await;
    assert_eq!(shown["queue"]["config"]["ttl"], 9, "{shown}");
    let (status, refused) = routes
        .ask_post("/api/v1/configure", &json!({"queue": "q", "mode": "reset"}))
        .await;
    assert_eq!(
        (status, &refused["field"]),
        (StatusCode::BAD_REQUEST, &json!("mode"))
    );
}

pub(crate) async fn changes_of_the_same_moment_are_all_kept(store: TestStore) {
    let routes = [(); 2].map(|()| Routes::of(store.queue()));
    for round in 1..=10 {
        let names = ["leaseTime", "retryLimit", "ttl", "maxSize"];
        let changes = names.iter().enumerate().map(|(number, name)| {
            let body = json!({"queue": "q", "options": {*name: round}});
            let routes = &routes[number % 2];
            async move { routes.post("/api/v1/configure", &body).await }
        });
        join_all(changes).await;
        let now = routes[0]
            .post("/api/v1/configure", &json!({"queue": "q"}))
            .await;
        for name in names {
            assert_eq!(now["options"][name], round, "{name}");
        }
    }
}

pub(crate) async fn a_change_made_of_other_options_is_not_done(store: TestStore) {
    let mut stale = configuration("q", |options| options.retry_limit = 9);
    stale.made_of = Some(serde_json::Map::new());
    stale.given = json!({"retryLimit": 9}).as_object().cloned().unwrap();
    // A new queue has no options yet.
    assert!(store.configure(stale.clone()).done().await.is_some());
    assert_eq!(store.configure(stale.clone()).done().await, None);
    stale.made_of = Some(stale.given.clone());
    assert!(store.configure(stale).done().await.is_some());
}
