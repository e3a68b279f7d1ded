//! Making a lease last longer.

use std::time::Duration;

use uuid::Uuid;
use wakeline_queue::ack::{AckOutcome, AckStatus};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{LEASE, RELEASED, assert_about, from, names, outcome, push},
    database::Database,
};

pub(crate) async fn it_lasts_from_now(database: Database) {
    let store = database.store().await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    database.pass(LEASE / 2).await;
    let now = database.now().await;
    let (partitions, until) = store
        .extend(lease, LEASE * 2)
        .commit_alone()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(partitions, 1);
    let lasts = u64::try_from(until - now).unwrap();
    assert!(Duration::from_micros(lasts) >= LEASE * 2);
    assert_about(from("q").nothing(&*store).await, LEASE * 2);
    database.pass(LEASE).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
}

pub(crate) async fn it_is_never_made_shorter(database: Database) {
    let store = database.store().await;
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    let before = store
        .extend(lease, LEASE * 3)
        .commit_alone()
        .await
        .unwrap()
        .unwrap();
    let after = store
        .extend(lease, LEASE)
        .commit_alone()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(before, after);
    assert_about(from("q").nothing(&*store).await, LEASE * 3);
}

pub(crate) async fn what_is_over_is_not_extended(database: Database) {
    let store = database.store().await;
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(
        store
            .extend(Uuid::now_v7(), LEASE)
            .commit_alone()
            .await
            .unwrap(),
        None
    );
    let lost = from("q").claim(&*store).await;
    database.pass(LEASE).await;
    assert_eq!(
        store
            .extend(lost.lease.unwrap(), LEASE)
            .commit_alone()
            .await
            .unwrap(),
        None
    );
    let held = from("q").claim(&*store).await;
    assert_eq!(names(&held), ["a"]);
    assert_eq!(
        store
            .extend(lost.lease.unwrap(), LEASE)
            .commit_alone()
            .await
            .unwrap(),
        None
    );
    outcome(&*store, &held, "a", AckStatus::Completed).await;
    assert_eq!(
        store
            .extend(held.lease.unwrap(), LEASE)
            .commit_alone()
            .await
            .unwrap(),
        None
    );
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn it_lasts_in_every_partition_of_the_claim(database: Database) {
    let store = database.store().await;
    for partition in ["p1", "p2", "p3"] {
        push(&*store, "q", partition, &[partition]).await;
    }
    let claimed = from("q").batch(9).partitions(3).claim(&*store).await;
    let lease = claimed.lease.unwrap();
    outcome(&*store, &claimed, "p2", AckStatus::Completed).await;
    let (partitions, _) = store
        .extend(lease, LEASE * 2)
        .commit_alone()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(partitions, 2, "one is done");
    database.pass(LEASE).await;
    for name in ["p1", "p3"] {
        assert_eq!(
            outcome(&*store, &claimed, name, AckStatus::Completed).await,
            RELEASED
        );
    }
    let late = outcome(&*store, &claimed, "p2", AckStatus::Completed).await;
    assert_eq!(late, AckOutcome::LeaseLost);
}
