//! Extending a lease.

use std::time::Duration;

use uuid::Uuid;
use wakeline_queue::ack::AckOutcome;
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{LEASE, RELEASED, assert_about, complete, from, names, push},
    test_store::TestStore,
};

pub(crate) async fn an_extension_counts_from_now(store: TestStore) {
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
    assert_eq!(complete(&*store, &claimed, "a").await, RELEASED);
}

pub(crate) async fn a_lease_is_never_shortened(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let claimed = from("q").claim(&*store).await;
    let lease = claimed.lease.unwrap();
    let before = store.extend(lease, LEASE * 3).done().await.unwrap();
    let after = store.extend(lease, LEASE).done().await.unwrap();
    assert_eq!(before, after);
    assert_about(from("q").nothing(&*store).await, LEASE * 3);
}

pub(crate) async fn an_expired_lease_is_not_extended(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(store.extend(Uuid::now_v7(), LEASE).done().await, None);
    let lost = from("q").claim(&*store).await;
    store.pass(LEASE).await;
    assert_eq!(store.extend(lost.lease.unwrap(), LEASE).done().await, None);
    let held = from("q").claim(&*store).await;
    assert_eq!(names(&held), ["a"]);
    assert_eq!(store.extend(lost.lease.unwrap(), LEASE).done().await, None);
    complete(&*store, &held, "a").await;
    assert_eq!(store.extend(held.lease.unwrap(), LEASE).done().await, None);
    assert_eq!(names(&from("q").claim(&*store).await), ["b"]);
}

pub(crate) async fn a_lease_is_extended_in_all_its_partitions(store: TestStore) {
    for partition in ["p1", "p2", "p3"] {
        push(&*store, "q", partition, &[partition]).await;
    }
    let claimed = from("q").batch(9).partitions(3).claim(&*store).await;
    let lease = claimed.lease.unwrap();
    complete(&*store, &claimed, "p2").await;
    let (partitions, _) = store.extend(lease, LEASE * 2).done().await.unwrap();
    assert_eq!(partitions, 2, "one is done");
    store.pass(LEASE).await;
    for name in ["p1", "p3"] {
        assert_eq!(complete(&*store, &claimed, name).await, RELEASED);
    }
    let late = complete(&*store, &claimed, "p2").await;
    assert_eq!(late, AckOutcome::AlreadyDone);
}
