//! Removing old messages, and what is left of deleted queues.

use wakeline_queue::{
    ack::AckOutcome,
    queue_admin::{SweepResult, SweptQueue},
    store::Store,
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        HOUR, HOUR_MS, apply, complete, configure, consume, fail, from, message, names, part, push,
        push_all, whole_batch,
    },
    test_store::TestStore,
};

async fn set_max_age(store: &dyn Store, queue: &str) {
    configure(store, queue, |options| options.max_age_ms = Some(HOUR_MS)).await;
}

/// As the server does it, with this limit. How many messages, and how many sweeps.
async fn sweep(store: &dyn Store, limit: u32) -> (u64, usize) {
    let mut messages = 0;
    for sweeps in 1..1_000 {
        let swept: SweepResult = store.sweep(limit).done().await;
        messages += swept.messages;
        if !swept.is_more {
            return (messages, sweeps);
        }
    }
    panic!("it never ends");
}

pub(crate) async fn messages_over_the_maximum_age_are_removed(store: TestStore) {
    set_max_age(&*store, "q").await;
    for queue in ["q", "kept"] {
        push(&*store, queue, "p", &["a", "b"]).await;
    }
    store.pass_for_all(HOUR * 2).await;
    push(&*store, "q", "p", &["c"]).await;
    assert_eq!(sweep(&*store, 500).await, (2, 1));
    assert_eq!(sweep(&*store, 500).await, (0, 1));
    assert_eq!(store.messages().await, 3);
    // Its transaction ids are free again, and the positions go on.
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!((names(&claimed), part(&claimed).end), (vec!["c", "a"], 4));
    assert_eq!(consume(&*store, "kept", "g", 9).await, ["a", "b"]);
}

pub(crate) async fn a_group_behind_the_sweep_continues_with_the_remaining_messages(
    store: TestStore,
) {
    set_max_age(&*store, "q").await;
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    fail(&*store, &claimed, "a").await;
    store.pass_for_all(HOUR * 2).await;
    sweep(&*store, 500).await;
    assert_eq!(store.database.count("queue_message_flag").await, 0);
    assert_eq!(from("q").nothing(&*store).await, None);
    push(&*store, "q", "p", &["c"]).await;
    assert_eq!(names(&from("q").claim_soon(&*store).await), ["c"]);
    let late = from("q").group("late").claim_soon(&*store).await;
    assert_eq!(names(&late), ["c"]);
}

pub(crate) async fn messages_that_all_groups_consumed_are_removed(store: TestStore) {
    configure(&*store, "q", |options| {
        options.completed_retention_ms = Some(HOUR_MS);
    })
    .await;
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p", &["b"]).await;
    store.pass_for_all(HOUR * 2).await;
    assert_eq!(sweep(&*store, 500).await.0, 0, "no group has consumed it");
    consume(&*store, "q", "fast", 2).await;
    consume(&*store, "q", "slow", 1).await;
    assert_eq!(sweep(&*store, 500).await.0, 1, "the slowest counts");
    let slow = from("q").group("slow").claim(&*store).await;
    assert_eq!(names(&slow), ["b"]);
    assert_eq!(sweep(&*store, 500).await.0, 0, "a consumer has it");
    complete(&*store, &slow, "b").await;
    push(&*store, "q", "p", &["c"]).await;
    consume(&*store, "q", "fast", 1).await;
    consume(&*store, "q", "slow", 1).await;
    assert_eq!(sweep(&*store, 500).await.0, 1, "the last one is young");
    assert_eq!(store.messages().await, 1);
}

pub(crate) async fn removed_messages_are_counted_by_queue_and_option(store: TestStore) {
    let options = [
        ("old", Some(HOUR_MS), false, None),
        ("late", Some(HOUR_MS), true, None),
        ("done", None, false, Some(HOUR_MS)),
        ("done_or_old", Some(HOUR_MS * 3), false, Some(HOUR_MS)),
        ("deleted", Some(HOUR_MS), false, None),
        ("kept", None, false, None),
    ];
    for (queue, max_age_ms, age_limits_waiting, completed_retention_ms) in options {
        configure(&*store, queue, |options| {
            options.max_age_ms = max_age_ms;
            options.age_limits_waiting = age_limits_waiting;
            options.completed_retention_ms = completed_retention_ms;
        })
        .await;
        for partition in ["p1", "p2"] {
            push(&*store, queue, partition, &["a", "b"]).await;
            push(&*store, queue, partition, &["c"]).await;
        }
        // Each of the two partitions, so that all of it has been consumed.
        for _ in 0..2 {
            from(queue).auto_ack().batch(9).claim(&*store).await;
        }
    }
    assert_eq!(store.delete_queue("deleted".into()).done().await, Some(2));
    store.pass_for_all(HOUR * 2).await;
    let removed = |queue: &str, retained, completed, evicted| SweptQueue {
        queue: queue.into(),
        retained,
        completed,
        evicted,
    };
    let mut swept = store.sweep(500).done().await;
    swept
        .queues
        .sort_by(|one, other| one.queue.cmp(&other.queue));
    assert_eq!(
        swept.queues,
        [
            removed("done", 0, 6, 0),
            removed("done_or_old", 0, 6, 0),
            removed("late", 0, 0, 6),
            removed("old", 6, 0, 0),
        ]
    );
    assert_eq!(swept.messages, 30, "with those of the deleted queue");
    let after = store.sweep(500).done().await;
    assert_eq!((after.messages, after.queues), (0, vec![]));
}

pub(crate) async fn a_sweep_removes_a_limited_number_of_segments(store: TestStore) {
    set_max_age(&*store, "q").await;
    for number in 0..7 {
        let name = number.to_string();
        push(&*store, "q", ["p1", "p2"][number % 2], &[&name]).await;
    }
    store.pass_for_all(HOUR * 2).await;
    let of_queue = SweptQueue {
        queue: "q".into(),
        retained: 3,
        ..SweptQueue::default()
    };
    let first = SweepResult {
        messages: 3,
        is_more: true,
        queues: vec![of_queue],
    };
    assert_eq!(store.sweep(3).done().await, first);
    assert_eq!(store.messages().await, 4);
    assert_eq!(sweep(&*store, 3).await.0, 4);
    assert_eq!(store.messages().await, 0);
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn a_deleted_queue_is_gone_at_once_and_its_name_can_be_used_again(
    store: TestStore,
) {
    configure(&*store, "q", |options| options.retry_limit = 0).await;
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    fail(&*store, &claimed, "a").await;
    assert_eq!(store.delete_queue("q".into()).done().await, Some(1));
    assert_eq!(store.delete_queue("q".into()).done().await, None);
    assert_eq!(from("q").nothing(&*store).await, None);
    // Before anything is swept.
    push(&*store, "q", "p", &["a", "b"]).await;
    let new = from("q").batch(9).claim(&*store).await;
    assert_eq!((names(&new), part(&new).first), (vec!["a", "b"], 0));
    assert_eq!(sweep(&*store, 2).await.0, 3);
    fail(&*store, &new, "a").await;
    let again = from("q").batch(9).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"], "with the options of a new queue");
    for (table, count) in [
        ("queue", 1),
        ("queue_partition", 1),
        ("queue_group", 1),
        ("queue_cursor", 1),
        ("queue_transaction", 2),
        ("queue_segment", 1),
        ("queue_message_flag", 1),
        ("queue_dead_letter", 0),
        ("queue_deleted", 0),
    ] {
        assert_eq!(store.database.count(table).await, count, "{table}");
    }
}

/// Another node may know the old queue's partitions.
pub(crate) async fn a_node_that_knows_the_deleted_queue_pushes_to_the_new_one(store: TestStore) {
    let [one, two] = store.nodes().await;
    push(&*one, "q", "p", &["a"]).await;
    push(&*two, "q", "p", &["b"]).await;
    one.delete_queue("q".into()).done().await;
    push(&*two, "q", "p", &["b"]).await;
    assert_eq!(names(&from("q").batch(9).claim(&*one).await), ["b"]);
    two.delete_queue("q".into()).done().await;
    sweep(&*two, 500).await;
    let pushes = vec![message("q", "p", "c"), message("q", "p2", "d")];
    let whole = whole_batch(vec![], pushes);
    assert_eq!(apply(&*one, whole).await.rejection, None);
    let claimed = from("q").batch(9).partitions(2).claim(&*two).await;
    let mut seen = names(&claimed);
    seen.sort_unstable();
    assert_eq!(seen, ["c", "d"]);
}

pub(crate) async fn a_lease_in_a_deleted_queue_is_lost(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    store.delete_queue("q".into()).done().await;
    let late = complete(&*store, &claimed, "a").await;
    assert_eq!(late, AckOutcome::LeaseLost);
}

pub(crate) async fn many_partitions_of_a_deleted_queue_are_removed_by_several_sweeps(
    store: TestStore,
) {
    let sent = (0..25).map(|number| message("q", &format!("p{number}"), "a"));
    push_all(&*store, sent.collect()).await;
    from("q").claim(&*store).await;
    store.delete_queue("q".into()).done().await;
    let (messages, sweeps) = sweep(&*store, 10).await;
    assert_eq!(messages, 25);
    assert!(sweeps > 5, "{sweeps}");
    for table in [
        "queue_partition",
        "queue_cursor",
        "queue_transaction",
        "queue_deleted",
    ] {
        assert_eq!(store.database.count(table).await, 0, "{table}");
    }
}
