use std::time::Duration;

use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    claim::Claim,
};

use crate::{
    calls::{GOES_ON, LEASE, RELEASED, ack, assert_about, from, names, outcome, push},
    test_store::TestStore,
};

/// The same claim by someone who does not name its lease.
fn without_lease(claimed: &Claim) -> Claim {
    Claim {
        lease: None,
        ..claimed.clone()
    }
}

pub(crate) async fn a_completed_batch_moves_on_and_releases(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["c"]);
}

pub(crate) async fn a_part_of_a_batch_keeps_the_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    store.pass(LEASE / 2).await;
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Completed).await,
        GOES_ON
    );
    // As it was, not prolonged.
    assert_about(from("q").nothing(&*store).await, LEASE / 2);
    store.pass(LEASE / 2).await;
    assert_eq!(names(&from("q").batch(3).claim(&*store).await), ["c"]);
}

pub(crate) async fn a_later_message_completes_those_before_it(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "c", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn below_the_cursor_nothing_changes(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    ack(&*store, &claimed, "b", AckStatus::Completed).await;
    let unfenced = without_lease(&claimed);
    for claimed in [&claimed, &unfenced] {
        let completed = outcome(&*store, claimed, "a", AckStatus::Completed).await;
        assert_eq!(completed, AckOutcome::AlreadyDone);
        for status in [AckStatus::Failed, AckStatus::Retry, AckStatus::DeadLetter] {
            let refused = outcome(&*store, claimed, "b", status).await;
            assert_eq!(refused, AckOutcome::Passed);
        }
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    assert_eq!(
        outcome(&*store, &claimed, "c", AckStatus::Completed).await,
        RELEASED
    );
}

pub(crate) async fn an_unknown_message_is_told_and_keeps_the_lease(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["elsewhere"]).await;
    let claimed = from("q").partition("p").claim(&*store).await;
    for transaction in ["unknown", "elsewhere"] {
        for status in [AckStatus::Completed, AckStatus::Failed] {
            let told = outcome(&*store, &claimed, transaction, status).await;
            assert_eq!(told, AckOutcome::Unknown);
        }
    }
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
}

pub(crate) async fn a_group_that_never_claimed_has_nothing_to_acknowledge(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let stranger = Claim {
        group: "stranger".to_owned(),
        ..claimed.clone()
    };
    let mut nowhere = claimed.clone();
    nowhere.parts[0].number = -1;
    for claimed in [stranger, nowhere] {
        let fenced = ack(&*store, &claimed, "a", AckStatus::Completed).await;
        assert_eq!(
            (fenced.outcome, fenced.wakes),
            (AckOutcome::LeaseLost, vec![])
        );
        let unfenced = without_lease(&claimed);
        let unfenced = ack(&*store, &unfenced, "a", AckStatus::Completed).await;
        assert_eq!(
            (unfenced.outcome, unfenced.wakes),
            (AckOutcome::Unknown, vec![])
        );
    }
}

pub(crate) async fn without_a_lease_it_moves_forward_only(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    let unfenced = without_lease(&claimed);
    store.pass(LEASE).await;
    assert_eq!(
        outcome(&*store, &unfenced, "b", AckStatus::Completed).await,
        GOES_ON,
        "there is no lease that could be released"
    );
    assert_eq!(
        outcome(&*store, &unfenced, "a", AckStatus::Completed).await,
        AckOutcome::AlreadyDone
    );
    let next = from("q").claim(&*store).await;
    assert_eq!(names(&next), ["c"]);
    // While another consumer has the lease, it may complete that consumer's messages.
    assert_eq!(
        outcome(&*store, &unfenced, "c", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(
        outcome(&*store, &next, "c", AckStatus::Completed).await,
        AckOutcome::LeaseLost
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["d"]);
}

pub(crate) async fn retry_comes_again_and_does_not_count(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    for _ in 0..10 {
        let claimed = from("q").batch(2).claim(&*store).await;
        assert_eq!(names(&claimed), ["a", "b"]);
        assert_eq!(
            outcome(&*store, &claimed, "a", AckStatus::Retry).await,
            RELEASED
        );
        assert_eq!(
            outcome(&*store, &claimed, "b", AckStatus::Completed).await,
            AckOutcome::LeaseLost,
            "what follows it comes again with it"
        );
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
}

pub(crate) async fn a_failed_message_is_held_back_as_long_as_the_queue_says(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    store
        .database
        .execute("UPDATE queue SET retry_delay_ms = 40000")
        .await;
    let delay = Duration::from_secs(40);
    let claimed = from("q").claim(&*store).await;
    let acked = ack(&*store, &claimed, "a", AckStatus::Failed).await;
    assert_eq!(acked.outcome, RELEASED);
    assert_eq!(acked.wakes.len(), 1, "waiters learn the new time");
    assert_about(from("q").nothing(&*store).await, delay);
    store.pass(delay).await;
    let claimed = from("q").claim(&*store).await;
    assert_eq!(names(&claimed), ["a"]);
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Retry).await,
        RELEASED
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}
