//! Making a lease last longer.

use std::time::Duration;

use uuid::Uuid;
use wakeline_queue::ack::{AckOutcome, AckStatus};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{LEASE, RELEASED, assert_about, from, names, outcome, push},
    test_store::TestStore,
};

pub(crate) async fn it_lasts_from_now(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    store.pass(LEASE / 2).await;
    let now = store.now().await;
    let (partitions, until) = store.extend(lease, LEASE * 2).done().await.unwrap();
    assert_eq!(partitions, 1);
    let lasts = u64::try_from(until - now).unwrap();
    assert!(Duration::from_micros(lasts) >= LEASE * 2);
    assert_about(from("q").nothing(&*store).await, LEASE * 2);
    store.pass(LEASE).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Completed).await,
        RELEASED
    );
}

pub(crate) async fn it_is_never_made_shorter(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    let before = store.extend(lease, LEASE * 3).done().await.unwrap();
    let after = store.extend(lease, LEASE).done().await.unwrap();
    assert_eq!(before, after);
    assert_about(from("q").nothing(&*store).await, LEASE * 3);
}

pub(crate) async fn what_is_over_is_not_extended(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(store.extend(Uuid::now_v7(), LEASE).done().await, None);
    let lost = from("q").claim(&*store).await;
    store.pass(LEASE).await;
    assert_eq!(store.extend(lost.lease.unwrap(), LEASE).done().await, None);
    let held = from("q").claim(&*store).await;
    assert_eq!(names(&held), ["a"]);
    assert_eq!(store.extend(lost.lease.unwrap(), LEASE).done().await, None);
    outcome(&*store, &held, "a", AckStatus::Completed).await;
    assert_eq!(store.extend(held.lease.unwrap(), LEASE).done().await, None);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn it_lasts_in_every_partition_of_the_claim(store: TestStore) {
    for partition in ["p1", "p2", "p3"] {
        push(&*store, "q", partition, &[partition]).await;
    }
    let claimed = from("q").batch(9).partitions(3).claim(&*store).await;
    let lease = claimed.lease.unwrap();
    outcome(&*store, &claimed, "p2", AckStatus::Completed).await;
    let (partitions, _) = store.extend(lease, LEASE * 2).done().await.unwrap();
    assert_eq!(partitions, 2, "one is done");
    store.pass(LEASE).await;
    for name in ["p1", "p3"] {
        assert_eq!(
            outcome(&*store, &claimed, name, AckStatus::Completed).await,
            RELEASED
        );
    }
    let late = outcome(&*store, &claimed, "p2", AckStatus::Completed).await;
    assert_eq!(late, AckOutcome::LeaseLost);
}
