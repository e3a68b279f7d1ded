//! The options of a queue.

use std::time::Duration;

use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    message::PushRefusal,
    options::Options,
};
use wakeline_wake::Cause;

use crate::{
    calls::{
        GOES_ON, RELEASED, ack, assert_about, configure, from, message, names, outcome, part, push,
        say, say_all, try_push,
    },
    test_door::{TestDoor, answer},
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

const DEAD: AckOutcome = AckOutcome::Done {
    lease_released: true,
    dead: true,
};

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap()
}

pub(crate) async fn without_retries_the_first_failure_is_the_last(store: TestStore) {
    let options = Options {
        retry_limit: 0,
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Failed).await,
        DEAD
    );
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["b"]);
    // "Again" does not count, however few failures are forgiven.
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Retry).await,
        RELEASED
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn what_fails_too_often_can_be_dropped(store: TestStore) {
    let options = Options {
        retry_limit: 1,
        keeps_dead_letters: false,
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    // The second one drops it: it went nowhere.
    for _ in 0..2 {
        let claimed = from("q").claim(&*store).await;
        assert_eq!(
            outcome(&*store, &claimed, "a", AckStatus::Failed).await,
            RELEASED
        );
    }
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    // Who says "dead" wants to keep it.
    let claimed = from("q").claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::DeadLetter).await,
        DEAD
    );
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
}

pub(crate) async fn a_failure_in_a_batch_holds_the_partition_back(store: TestStore) {
    let options = Options {
        retry_delay_ms: ms(MINUTE),
        retry_limit: 1,
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    push(&*store, "q", "p2", &["d"]).await;
    let claimed = from("q").partition("p").batch(3).claim(&*store).await;
    let said = [
        ("a", AckStatus::Completed),
        ("b", AckStatus::Failed),
        ("c", AckStatus::Completed),
    ];
    let said = said.map(|(name, status)| say(&claimed, name, status));
    say_all(&*store, said.to_vec()).await;
    assert_about(from("q").partition("p").nothing(&*store).await, MINUTE);
    // Only that one.
    assert_eq!(names(&from("q").auto_ack().claim(&*store).await), ["d"]);
    // What is pushed meanwhile waits with it.
    push(&*store, "q", "p", &["e"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE);
    store.pass(MINUTE).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&claimed), ["b", "c", "e"]);
    // What is dead is waited for no longer.
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Failed).await,
        DEAD
    );
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c", "e"]);
}

pub(crate) async fn a_delayed_message_is_handed_out_when_it_is_due(store: TestStore) {
    let options = Options {
        delay_ms: ms(MINUTE),
        ..Options::default()
    };
    configure(&*store, "q", options).await;
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

pub(crate) async fn a_shorter_delay_holds_for_what_is_there(store: TestStore) {
    let delayed = |time| Options {
        delay_ms: ms(time),
        ..Options::default()
    };
    configure(&*store, "q", delayed(HOUR)).await;
    push(&*store, "q", "p", &["a"]).await;
    assert_about(from("q").nothing(&*store).await, HOUR);
    configure(&*store, "q", delayed(Duration::ZERO)).await;
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["a"]);
}

pub(crate) async fn a_window_gathers_until_it_is_calm(store: TestStore) {
    let options = Options {
        window_ms: ms(MINUTE),
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    push(&*store, "q", "p", &["a"]).await;
    assert_about(from("q").nothing(&*store).await, MINUTE);
    store.pass_for_all(MINUTE / 2).await;
    push(&*store, "q", "p", &["b"]).await;
    store.pass_for_all(MINUTE / 2).await;
    assert_about(from("q").nothing(&*store).await, MINUTE / 2);
    store.pass_for_all(MINUTE / 2).await;
    assert_eq!(
        names(&from("q").batch(9).claim_soon(&*store).await),
        ["a", "b"]
    );
}

/// One that never becomes calm must not hide one that is.
pub(crate) async fn a_busy_partition_does_not_hide_a_calm_one(store: TestStore) {
    let options = Options {
        window_ms: ms(MINUTE),
        ..Options::default()
    };
    configure(&*store, "q", options).await;
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

async fn timer_wakes(store: TestStore, options: Options) {
    let door = TestDoor::open(&store).await;
    configure(&*door.store.inner, "q", options).await;
    let first = door.parked(from("q")).await;
    door.push(&["p"], "a").await;
    let (claim, woken_by) = answer(first).await;
    assert_eq!(names(claim.claim()), ["a"]);
    assert_eq!(woken_by, Some(Cause::Timer));
}

pub(crate) async fn a_waiter_is_woken_when_a_delay_is_over(store: TestStore) {
    let options = Options {
        delay_ms: 400,
        ..Options::default()
    };
    timer_wakes(store, options).await;
}

pub(crate) async fn a_waiter_is_woken_when_a_window_is_over(store: TestStore) {
    let options = Options {
        window_ms: 400,
        ..Options::default()
    };
    timer_wakes(store, options).await;
}

pub(crate) async fn a_waiter_is_woken_when_a_retry_is_due(store: TestStore) {
    let door = TestDoor::open(&store).await;
    let options = Options {
        retry_delay_ms: 400,
        ..Options::default()
    };
    configure(&*door.store.inner, "q", options).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*door.store.inner).await;
    let waiting = door.parked(from("q")).await;
    crate::lost_wakes::acknowledge(&door.queue, say(&claimed, "a", AckStatus::Failed)).await;
    let (claim, woken_by) = answer(waiting).await;
    assert_eq!(names(claim.claim()), ["a"]);
    assert_eq!(woken_by, Some(Cause::Timer));
}

pub(crate) async fn a_full_queue_refuses(store: TestStore) {
    let options = Options {
        max_size: 3,
        ..Options::default()
    };
    configure(&*store, "q", options).await;
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
    let stored: Vec<_> = pushed
        .iter()
        .flatten()
        .map(|pushed| pushed.duplicate)
        .collect();
    assert_eq!(
        stored,
        [false, false, false, true],
        "what is there can be pushed again"
    );
    // The slowest group counts.
    let fast = from("q").group("fast").auto_ack().batch(9).partitions(9);
    fast.claim(&*store).await;
    let slow = from("q")
        .group("slow")
        .partition("p1")
        .batch(2)
        .claim(&*store)
        .await;
    let one_more = || try_push(&*store, vec![message("q", "p1", "d")]);
    assert_eq!(one_more().await.pushed, [Err(full)]);
    ack(&*store, &slow, "a", AckStatus::Completed).await;
    assert!(one_more().await.pushed[0].is_ok());
    let more = try_push(&*store, vec![message("q", "p3", "e")]).await;
    assert_eq!(more.pushed, [Err(full)]);
    // Another queue is another matter.
    push(&*store, "r", "p", &["x", "y", "z", "u"]).await;
}

pub(crate) async fn what_is_too_old_is_not_handed_out(store: TestStore) {
    let options = Options {
        max_age_ms: Some(ms(MINUTE)),
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    store.pass_for_all(MINUTE / 2).await;
    push(&*store, "q", "p", &["c"]).await;
    let claimed = from("q").group("early").batch(2).claim(&*store).await;
    store.pass_for_all(MINUTE / 2 + SECOND).await;
    assert_eq!(
        names(&from("q").batch(9).auto_ack().claim(&*store).await),
        ["c"]
    );
    store.pass_for_all(MINUTE).await;
    assert_eq!(from("q").group("late").nothing(&*store).await, None);
    // A consumer that got it in time may acknowledge it, if its lease is valid.
    let late = outcome(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!(late, AckOutcome::LeaseLost);
    push(&*store, "q", "p", &["d"]).await;
    let claimed = from("q").group("early").batch(9).claim_soon(&*store).await;
    assert_eq!(names(&claimed), ["d"]);
}

pub(crate) async fn what_is_not_said_is_at_its_default_again(store: TestStore) {
    let options = Options {
        lease_ms: Some(ms(HOUR)),
        retry_limit: 0,
        max_size: 1,
        ..Options::default()
    };
    configure(&*store, "q", options).await;
    configure(&*store, "q", Options::default()).await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(claimed.time, Some(crate::calls::LEASE));
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Failed).await,
        RELEASED
    );
}

/// The tables and the options name each default once more: they must agree.
pub(crate) async fn a_queue_that_nobody_configured_is_at_the_defaults(store: TestStore) {
    push(&*store, "pushed", "p", &["a"]).await;
    configure(&*store, "configured", Options::default()).await;
    let kinds = "SELECT count(*), CAST(sum(o.queues) AS bigint) FROM (
         SELECT count(*) AS queues FROM queue GROUP BY lease_ms, retry_limit, retry_delay_ms,
             keeps_dead_letters, priority, delay_ms, window_ms, max_size, max_age_ms, age_limits_waiting, completed_retention_ms,
             is_sealed) o";
    assert_eq!(store.database.pairs(kinds).await, [(1, 2)]);
}
