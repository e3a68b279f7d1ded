use std::time::Duration;

use uuid::Uuid;
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    claim::Claim,
};

use crate::{
    calls::{
        GOES_ON, LEASE, RELEASED, assert_about, from, names, outcome, part, push, release_claim,
    },
    test_store::TestStore,
};

pub(crate) async fn a_leased_partition_is_not_served_again_before_its_time(store: TestStore) {
    push(&*store, "q", "p1", &["a", "b"]).await;
    from("q").claim(&*store).await;
    assert_about(from("q").nothing(&*store).await, LEASE);
    assert_about(from("q").partition("p1").nothing(&*store).await, LEASE);
    assert_about(from("q").auto_ack().nothing(&*store).await, LEASE);
    push(&*store, "q", "p2", &["c"]).await;
    store.pass(LEASE / 2).await;
    assert_eq!(names(&from("q").claim(&*store).await), ["c"]);
    // The next to end.
    assert_about(from("q").nothing(&*store).await, LEASE / 2);
    assert_about(from("q").partition("p2").nothing(&*store).await, LEASE);
}

pub(crate) async fn the_queue_says_how_long_a_lease_lasts(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let time = LEASE * 3;
    store.set_lease("q", time).await;
    let claimed = from("q").claim(&*store).await;
    assert_about(from("q").nothing(&*store).await, time);
    store.pass(LEASE * 2).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
}

pub(crate) async fn an_expired_lease_is_delivered_again(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let first = from("q").batch(2).claim(&*store).await;
    store.pass(LEASE).await;
    let second = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&first), names(&second));
    assert_ne!(first.lease, second.lease);
    // What was acknowledged before does not come again.
    assert_eq!(
        outcome(&*store, &second, "a", AckStatus::Completed).await,
        GOES_ON
    );
    store.pass(LEASE).await;
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["b", "c"]);
}

/// Longer than a slow machine takes from a claim to the next.
const SHORT_LEASE: Duration = Duration::from_secs(1);

/// The same with a real, short lease.
pub(crate) async fn a_lease_ends_by_the_clock(store: TestStore) {
    store.let_the_clock_run();
    push(&*store, "q", "p", &["a"]).await;
    store.set_lease("q", SHORT_LEASE).await;
    let first = from("q").claim(&*store).await;
    let recheck_after = from("q").nothing(&*store).await.unwrap();
    assert!(recheck_after <= SHORT_LEASE, "{recheck_after:?}");
    tokio::time::sleep(recheck_after + Duration::from_millis(2)).await;
    let second = from("q").claim(&*store).await;
    assert_eq!(part(&first).messages, part(&second).messages);
    let late = outcome(&*store, &first, "a", AckStatus::Completed).await;
    assert_eq!(late, AckOutcome::LeaseLost);
}

pub(crate) async fn who_has_lost_its_lease_changes_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").batch(2).claim(&*store).await;
    let statuses = [
        AckStatus::Completed,
        AckStatus::Failed,
        AckStatus::Retry,
        AckStatus::DeadLetter,
    ];
    store.pass(LEASE).await;
    // Expired, and nobody else has it yet.
    for status in statuses {
        assert_eq!(
            outcome(&*store, &lost, "a", status).await,
            AckOutcome::LeaseLost
        );
    }
    let held = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&held), ["a", "b"]);
    let foreign = Claim {
        lease: Some(Uuid::now_v7()),
        ..lost.clone()
    };
    let nil = Claim {
        lease: Some(Uuid::nil()),
        ..lost.clone()
    };
    for loser in [&lost, &foreign, &nil] {
        for status in statuses {
            for transaction in ["a", "b", "unknown"] {
                assert_eq!(
                    outcome(&*store, loser, transaction, status).await,
                    AckOutcome::LeaseLost
                );
            }
        }
        assert!(!release_claim(&*store, loser).await);
    }
    assert_eq!(store.database.count("queue_message_flag").await, 0);
    assert_eq!(store.database.count("queue_dead_letter").await, 0);
    assert_eq!(
        outcome(&*store, &held, "a", AckStatus::Completed).await,
        GOES_ON
    );
    assert_eq!(
        outcome(&*store, &held, "b", AckStatus::Completed).await,
        RELEASED
    );
    assert_eq!(
        outcome(&*store, &held, "b", AckStatus::Completed).await,
        AckOutcome::LeaseLost
    );
}

pub(crate) async fn auto_ack_moves_on_without_a_lease(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    let auto = || from("q").auto_ack();
    let one = auto().claim(&*store).await;
    assert_eq!(
        (names(&one), one.lease, part(&one).remaining),
        (vec!["a"], None, 3)
    );
    let two = auto().batch(2).claim(&*store).await;
    assert_eq!((names(&two), part(&two).remaining), (vec!["b", "c"], 1));
    let rest = auto().batch(9).claim(&*store).await;
    assert_eq!((names(&rest), part(&rest).remaining), (vec!["d"], 0));
    assert_eq!(auto().nothing(&*store).await, None);
    push(&*store, "q", "p", &["e"]).await;
    assert_eq!(names(&auto().claim(&*store).await), ["e"]);
    // Under a lease nothing remains for others.
    push(&*store, "q", "p", &["f", "g"]).await;
    assert_eq!(part(&from("q").claim(&*store).await).remaining, 0);
}

pub(crate) async fn auto_ack_after_an_expired_lease_fences_the_old_holder(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let lost = from("q").batch(2).claim(&*store).await;
    store.pass(LEASE).await;
    assert_eq!(names(&from("q").auto_ack().claim(&*store).await), ["a"]);
    assert_eq!(
        outcome(&*store, &lost, "b", AckStatus::Completed).await,
        AckOutcome::LeaseLost
    );
    assert!(!release_claim(&*store, &lost).await);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}
