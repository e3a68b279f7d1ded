use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    store::Store,
};

use crate::{
    calls::{GOES_ON, RELEASED, ack, from, names, outcome, part, push},
    test_store::TestStore,
};

/// Failures that a queue forgives if it is not told otherwise.
const RETRIES: usize = 3;

const DEAD_AND_RELEASED: AckOutcome = AckOutcome::Done {
    lease_released: true,
    dead: true,
};

/// Position and failures of every dead letter.
async fn dead(store: &TestStore) -> Vec<(i64, i64)> {
    store
        .database
        .pairs("SELECT position, CAST(failures AS bigint) FROM queue_dead_letter ORDER BY 1")
        .await
}

async fn fail(store: &dyn Store, times: usize, transaction: &str) {
    for _ in 0..times {
        let claimed = from("q").batch(9).claim(store).await;
        let failed = outcome(store, &claimed, transaction, AckStatus::Failed).await;
        assert_eq!(failed, RELEASED);
    }
}

pub(crate) async fn a_message_that_fails_too_often_is_dead(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    fail(&*store, RETRIES, "a").await;
    assert_eq!(dead(&store).await, []);
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    let last = ack(&*store, &claimed, "a", AckStatus::Failed).await;
    assert_eq!(last.outcome, DEAD_AND_RELEASED);
    assert_eq!(last.wakes.len(), 1);
    assert_eq!(dead(&store).await, [(0, 4)]);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["b"]);
}

pub(crate) async fn failures_belong_to_the_message(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    fail(&*store, RETRIES, "a").await;
    let claimed = from("q").batch(9).claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Failed).await,
        RELEASED
    );
    fail(&*store, RETRIES - 1, "b").await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Failed).await,
        DEAD_AND_RELEASED
    );
    assert_eq!(dead(&store).await, [(1, 4)]);
}

pub(crate) async fn dead_at_once(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    for name in ["a", "b"] {
        let claimed = from("q").batch(2).claim(&*store).await;
        assert_eq!(names(&claimed)[0], name);
        assert_eq!(
            outcome(&*store, &claimed, name, AckStatus::DeadLetter).await,
            DEAD_AND_RELEASED
        );
    }
    assert_eq!(dead(&store).await, [(0, 0), (1, 0)]);
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c"]);
}

/// It is not passed before them, and it does not come again with them.
pub(crate) async fn a_dead_message_waits_for_those_before_it(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    fail(&*store, RETRIES, "b").await;
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Failed).await,
        DEAD_AND_RELEASED
    );
    // A batch is of so many places in line.
    let redelivered = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&redelivered), ["a", "c"]);
    assert_eq!(
        outcome(&*store, &redelivered, "a", AckStatus::Failed).await,
        RELEASED
    );
    let redelivered = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&redelivered), ["a", "c"]);
    assert_eq!(
        outcome(&*store, &redelivered, "c", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["d"]);
    assert_eq!(dead(&store).await, [(1, 4)]);
}

pub(crate) async fn the_lease_ends_when_only_dead_messages_are_left(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    for name in ["c", "b"] {
        let claimed = from("q").batch(3).claim(&*store).await;
        assert_eq!(
            outcome(&*store, &claimed, name, AckStatus::DeadLetter).await,
            DEAD_AND_RELEASED
        );
    }
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    // All three are answered for now.
    let last = ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!(last.outcome, RELEASED);
    assert_eq!(last.wakes.len(), 1);
    let claimed = from("q").claim(&*store).await;
    assert_eq!((names(&claimed), part(&claimed).first), (vec!["d"], 3));
}

pub(crate) async fn dead_messages_are_skipped_by_their_group_only(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    ack(&*store, &claimed, "b", AckStatus::DeadLetter).await;
    ack(&*store, &claimed, "a", AckStatus::Retry).await;
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["a"]);
    let other = from("q").group("other").batch(2).claim(&*store).await;
    assert_eq!(names(&other), ["a", "b"]);
}

pub(crate) async fn only_dead_messages_left_is_nothing_left(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    ack(&*store, &claimed, "b", AckStatus::DeadLetter).await;
    ack(&*store, &claimed, "a", AckStatus::Retry).await;
    let auto = from("q").auto_ack();
    assert_eq!(names(&auto.claim(&*store).await), ["a"]);
    assert_eq!(from("q").nothing(&*store).await, None);
    let ready = push(&*store, "q", "p", &["c"]).await;
    assert_eq!(ready.len(), 1, "the group had caught up");
    assert_eq!(names(&from("q").batch(9).claim(&*store).await), ["c"]);
}
