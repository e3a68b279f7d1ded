//! Groups that are moved, and forgotten.

use std::time::Duration;

use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    claim::Start,
    queue_admin::{GroupScope, Seek},
    store::Store,
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{RELEASED, Request, ack, from, names, outcome, push},
    test_door::{TestDoor, answer},
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_US: i64 = 3_600_000_000;

fn group(queue: Option<&str>, partition: Option<&str>) -> GroupScope {
    GroupScope {
        group: "g".to_owned(),
        queue: queue.map(str::to_owned),
        partition: partition.map(str::to_owned),
    }
}

fn all() -> Request {
    from("q").batch(9).auto_ack()
}

async fn seek(store: &dyn Store, scope: GroupScope, to: Seek) -> u64 {
    store.seek(scope, to).done().await
}

pub(crate) async fn to_the_end(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    from("q").auto_ack().claim(&*store).await;
    assert_eq!(seek(&*store, group(Some("q"), None), Seek::End).await, 1);
    assert_eq!(all().nothing(&*store).await, None);
    let ready = push(&*store, "q", "p", &["c"]).await;
    assert_eq!(ready.len(), 1, "it had caught up");
    assert_eq!(names(&all().claim(&*store).await), ["c"]);
}

pub(crate) async fn to_a_time(store: TestStore) {
    for name in ["a", "b", "c"] {
        push(&*store, "q", "p", &[name]).await;
        store.pass_for_all(HOUR).await;
    }
    assert_eq!(names(&all().claim(&*store).await), ["a", "b", "c"]);
    let now = store.now().await;
    for (since, expected) in [(5, vec!["a", "b", "c"]), (1, vec![]), (2, vec!["c"])] {
        let to = Seek::At(now - since * HOUR_US + HOUR_US / 2);
        assert_eq!(seek(&*store, group(Some("q"), None), to).await, 1);
        if expected.is_empty() {
            assert_eq!(all().nothing(&*store).await, None);
        } else {
            assert_eq!(names(&all().claim_soon(&*store).await), expected);
        }
    }
}

pub(crate) async fn one_partition(store: TestStore) {
    push(&*store, "q", "p1", &["a"]).await;
    push(&*store, "q", "p2", &["b"]).await;
    push(&*store, "r", "p1", &["c"]).await;
    all().partitions(2).claim(&*store).await;
    from("r").auto_ack().claim(&*store).await;
    let to = Seek::At(0);
    assert_eq!(seek(&*store, group(Some("q"), Some("p1")), to).await, 1);
    assert_eq!(names(&all().partitions(9).claim_soon(&*store).await), ["a"]);
    assert_eq!(from("r").nothing(&*store).await, None);
    // In all queues.
    assert_eq!(seek(&*store, group(None, None), to).await, 3);
    assert_eq!(names(&from("r").claim(&*store).await), ["c"]);
    for (queue, partition) in [("q", Some("none")), ("none", None)] {
        assert_eq!(seek(&*store, group(Some(queue), partition), to).await, 0);
    }
}

pub(crate) async fn the_dead_stay_dead(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    ack(&*store, &claimed, "a", AckStatus::DeadLetter).await;
    assert_eq!(names(&all().claim(&*store).await), ["b", "c"]);
    seek(&*store, group(Some("q"), None), Seek::At(0)).await;
    assert_eq!(names(&all().claim_soon(&*store).await), ["b", "c"]);
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
}

pub(crate) async fn leases_and_failures_are_forgotten(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for _ in 0..3 {
        let claimed = from("q").claim(&*store).await;
        assert_eq!(
            outcome(&*store, &claimed, "a", AckStatus::Failed).await,
            RELEASED
        );
    }
    let claimed = from("q").claim(&*store).await;
    seek(&*store, group(Some("q"), None), Seek::At(0)).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Failed).await,
        AckOutcome::LeaseLost
    );
    let claimed = from("q").claim_soon(&*store).await;
    assert_eq!(
        outcome(&*store, &claimed, "a", AckStatus::Failed).await,
        RELEASED
    );
}

pub(crate) async fn other_groups_stay_where_they_are(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    from("q").auto_ack().claim(&*store).await;
    from("q").group("other").auto_ack().claim(&*store).await;
    seek(&*store, group(Some("q"), None), Seek::End).await;
    let other = from("q").group("other").batch(9).claim(&*store).await;
    assert_eq!(names(&other), ["b"]);
}

pub(crate) async fn who_waits_is_woken_by_a_seek(store: TestStore) {
    let door = TestDoor::open(&store).await;
    door.watch();
    push(&*door.store.inner, "q", "p", &["a"]).await;
    all().claim(&*door.store.inner).await;
    for request in [from("q").auto_ack(), from("q").partition("p").auto_ack()] {
        let waiting = door.parked(request).await;
        let scope = group(Some("q"), Some("p"));
        assert_eq!(door.queue.seek(scope, Seek::At(0)).await.unwrap(), 1);
        let (claim, _) = answer(waiting).await;
        assert_eq!(names(claim.claim()), ["a"]);
        wakeline_web::DeliveryGuard::delivered(claim);
    }
}

pub(crate) async fn a_deleted_group_begins_where_it_began(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all().start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    store.pass_for_all(HOUR).await;
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["b"]).await;
    new.clone().partitions(9).claim_soon(&*store).await;
    assert_eq!(new.nothing(&*store).await, None);
    let deleted = store
        .delete_group(group(Some("q"), None), false)
        .commit_alone()
        .await;
    assert_eq!(deleted.unwrap(), 2);
    let again = all().partitions(9).claim_soon(&*store).await;
    let mut seen = names(&again);
    seen.sort_unstable();
    assert_eq!(seen, ["a", "b"], "as new as it was");
}

pub(crate) async fn a_group_deleted_with_its_start_is_a_new_one(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    push(&*store, "r", "p", &["elsewhere"]).await;
    store.pass_for_all(HOUR).await;
    for queue in ["q", "r"] {
        let new = from(queue).start(Start::New);
        assert_eq!(new.nothing(&*store).await, None);
    }
    let deleted = store
        .delete_group(group(Some("q"), None), true)
        .commit_alone()
        .await;
    assert_eq!(deleted.unwrap(), 1);
    assert_eq!(names(&from("q").claim(&*store).await), ["old"]);
    assert_eq!(from("r").nothing(&*store).await, None, "only there");
    assert_eq!(store.delete_group(group(None, None), true).done().await, 2);
    assert_eq!(names(&from("r").claim(&*store).await), ["elsewhere"]);
    assert_eq!(
        store
            .delete_group(group(Some("none"), None), true)
            .done()
            .await,
        0
    );
}

pub(crate) async fn a_deleted_group_has_no_lease_and_no_dead(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    ack(&*store, &claimed, "a", AckStatus::DeadLetter).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&claimed), ["b"]);
    store
        .delete_group(group(Some("q"), None), false)
        .done()
        .await;
    assert_eq!(
        outcome(&*store, &claimed, "b", AckStatus::Completed).await,
        AckOutcome::LeaseLost
    );
    let again = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
    assert_eq!(
        outcome(&*store, &again, "b", AckStatus::Failed).await,
        RELEASED
    );
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["a", "b"]);
}
