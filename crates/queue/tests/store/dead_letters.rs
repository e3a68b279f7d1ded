use wakeline_queue::{ack::AckStatus, store::Store};

use crate::{
    calls::{
        DEAD, DEAD_LETTERS, GOES_ON, RELEASED, ack, complete, fail, from, make_dead, names, part,
        push, retry,
    },
    test_store::TestStore,
};

/// Failures without a dead letter, by default.
const RETRIES: usize = 3;

/// Position and failures of every dead letter.
async fn dead(store: &TestStore) -> Vec<(i64, i64)> {
    store.database.pairs(DEAD_LETTERS).await
}

async fn fail_repeatedly(store: &dyn Store, times: usize, transaction: &str) {
    for _ in 0..times {
        let claimed = from("q").batch(9).claim(store).await;
        assert_eq!(fail(store, &claimed, transaction).await, RELEASED);
    }
}

pub(crate) async fn a_message_that_fails_too_often_becomes_a_dead_letter(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    fail_repeatedly(&*store, RETRIES, "a").await;
    assert_eq!(dead(&store).await, []);
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    let (failed, wakes) = ack(&*store, &claimed, "a", AckStatus::Failed).await;
    assert_eq!((failed, wakes.len()), (DEAD, 1));
    assert_eq!(dead(&store).await, [(0, 4)]);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["b"]);
}

pub(crate) async fn failures_are_counted_per_message(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    fail_repeatedly(&*store, RETRIES, "a").await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(complete(&*store, &claimed, "a").await, GOES_ON);
    assert_eq!(fail(&*store, &claimed, "b").await, RELEASED);
    fail_repeatedly(&*store, RETRIES - 1, "b").await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(fail(&*store, &claimed, "b").await, DEAD);
    assert_eq!(dead(&store).await, [(1, 4)]);
}

pub(crate) async fn the_status_dead_letter_makes_a_dead_letter_at_once(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    for name in ["a", "b"] {
        let claimed = from("q").batch(2).claim(&*store).await;
        assert_eq!(names(&claimed)[0], name);
        assert_eq!(make_dead(&*store, &claimed, name).await, DEAD);
    }
    assert_eq!(dead(&store).await, [(0, 0), (1, 0)]);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c"]);
}

/// Nor is it redelivered with them.
pub(crate) async fn a_dead_message_is_passed_after_those_before_it(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    fail_repeatedly(&*store, RETRIES, "b").await;
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(fail(&*store, &claimed, "b").await, DEAD);
    // A batch is so many positions.
    let redelivered = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&redelivered), ["a", "c"]);
    assert_eq!(fail(&*store, &redelivered, "a").await, RELEASED);
    let redelivered = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&redelivered), ["a", "c"]);
    assert_eq!(complete(&*store, &redelivered, "c").await, RELEASED);
    assert_eq!(names(&from("q").claim(&*store).await), ["d"]);
    assert_eq!(dead(&store).await, [(1, 4)]);
}

pub(crate) async fn a_lease_ends_when_only_dead_messages_are_left(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    for name in ["c", "b"] {
        let claimed = from("q").batch(3).claim(&*store).await;
        assert_eq!(make_dead(&*store, &claimed, name).await, DEAD);
    }
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    // All three are completed or dead now.
    let (acked, wakes) = ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!((acked, wakes.len()), (RELEASED, 1));
    let claimed = from("q").claim(&*store).await;
    assert_eq!((names(&claimed), part(&claimed).first), (vec!["d"], 3));
}

pub(crate) async fn dead_messages_are_skipped_by_their_group_only(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    make_dead(&*store, &claimed, "b").await;
    retry(&*store, &claimed, "a").await;
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["a"]);
    let other = from("q").group("other").batch(2).claim(&*store).await;
    assert_eq!(names(&other), ["a", "b"]);
}

pub(crate) async fn a_pop_finds_nothing_where_only_dead_messages_are_left(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    make_dead(&*store, &claimed, "b").await;
    retry(&*store, &claimed, "a").await;
    let auto = from("q").auto_ack();
    assert_eq!(names(&auto.claim(&*store).await), ["a"]);
    assert_eq!(from("q").nothing(&*store).await, None);
    let wakes = push(&*store, "q", "p", &["c"]).await;
    assert_eq!(wakes.len(), 1, "the group had caught up");
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c"]);
}
