//! Groups that are moved or deleted.

use wakeline_queue::{
    ack::AckOutcome,
    claim::Start,
    queue_admin::{GroupScope, Seek},
    store::Store,
};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{
        HOUR, HOUR_US, RELEASED, Request, complete, fail, from, make_dead, names, push, scope,
    },
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

fn all() -> Request {
    from("q").batch(9).auto_ack()
}

async fn seek(store: &dyn Store, scope: GroupScope, to: Seek) -> u64 {
    store.seek(scope, to).done().await
}

async fn delete(store: &dyn Store, queue: Option<&str>, with_start: bool) -> u64 {
    let deleting = store.delete_group(scope(queue, None), with_start);
    deleting.done().await
}

pub(crate) async fn a_seek_to_the_end_skips_all_messages(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    from("q").auto_ack().claim(&*store).await;
    assert_eq!(seek(&*store, scope(Some("q"), None), Seek::End).await, 1);
    assert_eq!(all().nothing(&*store).await, None);
    let wakes = push(&*store, "q", "p", &["c"]).await;
    assert_eq!(wakes.len(), 1, "it had caught up");
    assert_eq!(names(&all().claim(&*store).await), ["c"]);
}

pub(crate) async fn a_seek_to_a_time_redelivers_the_messages_since_then(store: TestStore) {
    for name in ["a", "b", "c"] {
        push(&*store, "q", "p", &[name]).await;
        store.pass_for_all(HOUR).await;
    }
    assert_eq!(names(&all().claim(&*store).await), ["a", "b", "c"]);
    let now = store.now().await;
    for (since, expected) in [(5, vec!["a", "b", "c"]), (1, vec![]), (2, vec!["c"])] {
        let to = Seek::At(now - since * HOUR_US + HOUR_US / 2);
        assert_eq!(seek(&*store, scope(Some("q"), None), to).await, 1);
        if expected.is_empty() {
            assert_eq!(all().nothing(&*store).await, None);
        } else {
            assert_eq!(names(&all().claim_soon(&*store).await), expected);
        }
    }
}

pub(crate) async fn a_seek_of_one_partition_leaves_the_others_alone(store: TestStore) {
    push(&*store, "q", "p1", &["a"]).await;
    push(&*store, "q", "p2", &["b"]).await;
    push(&*store, "r", "p1", &["c"]).await;
    all().partitions(2).claim(&*store).await;
    from("r").auto_ack().claim(&*store).await;
    let to = Seek::At(0);
    assert_eq!(seek(&*store, scope(Some("q"), Some("p1")), to).await, 1);
    assert_eq!(names(&all().partitions(9).claim_soon(&*store).await), ["a"]);
    assert_eq!(from("r").nothing(&*store).await, None);
    // In all queues.
    assert_eq!(seek(&*store, scope(None, None), to).await, 3);
    assert_eq!(names(&from("r").claim(&*store).await), ["c"]);
    for (queue, partition) in [("q", Some("none")), ("none", None)] {
        assert_eq!(seek(&*store, scope(Some(queue), partition), to).await, 0);
    }
}

pub(crate) async fn dead_messages_stay_dead_after_a_seek(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").batch(3).claim(&*store).await;
    make_dead(&*store, &claimed, "a").await;
    assert_eq!(names(&all().claim(&*store).await), ["b", "c"]);
    seek(&*store, scope(Some("q"), None), Seek::At(0)).await;
    assert_eq!(names(&all().claim_soon(&*store).await), ["b", "c"]);
    assert_eq!(store.database.count("queue_dead_letter").await, 1);
}

pub(crate) async fn a_seek_forgets_leases_and_failures(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for _ in 0..3 {
        let claimed = from("q").claim(&*store).await;
        assert_eq!(fail(&*store, &claimed, "a").await, RELEASED);
    }
    let claimed = from("q").claim(&*store).await;
    seek(&*store, scope(Some("q"), None), Seek::At(0)).await;
    assert_eq!(fail(&*store, &claimed, "a").await, AckOutcome::LeaseLost);
    let claimed = from("q").claim_soon(&*store).await;
    assert_eq!(fail(&*store, &claimed, "a").await, RELEASED);
}

pub(crate) async fn a_seek_leaves_other_groups_alone(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    from("q").auto_ack().claim(&*store).await;
    from("q").group("other").auto_ack().claim(&*store).await;
    seek(&*store, scope(Some("q"), None), Seek::End).await;
    let other = from("q").group("other").batch(9).claim(&*store).await;
    assert_eq!(names(&other), ["b"]);
}

pub(crate) async fn a_seek_wakes_waiting_pops(store: TestStore) {
    let door = TestDoor::open(&store).await;
    door.recheck_on_request();
    push(&*store, "q", "p", &["a"]).await;
    all().claim(&*store).await;
    for request in [from("q").auto_ack(), from("q").partition("p").auto_ack()] {
        let waiting = door.parked(request).await;
        let partition = scope(Some("q"), Some("p"));
        assert_eq!(door.queue.seek(partition, Seek::At(0)).await.unwrap(), 1);
        assert_eq!(names(&taken(waiting).await), ["a"]);
    }
}

pub(crate) async fn a_deleted_group_starts_again_where_it_started(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    store.pass_for_all(HOUR).await;
    let new = all().start(Start::New);
    assert_eq!(new.nothing(&*store).await, None);
    store.pass_for_all(HOUR).await;
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["b"]).await;
    new.clone().partitions(9).claim_soon(&*store).await;
    assert_eq!(new.nothing(&*store).await, None);
    assert_eq!(delete(&*store, Some("q"), false).await, 2);
    let again = all().partitions(9).claim_soon(&*store).await;
    let mut seen = names(&again);
    seen.sort_unstable();
    assert_eq!(seen, ["a", "b"], "as new as it was");
}

pub(crate) async fn a_group_deleted_with_its_start_starts_as_a_new_one(store: TestStore) {
    push(&*store, "q", "p", &["old"]).await;
    push(&*store, "r", "p", &["elsewhere"]).await;
    store.pass_for_all(HOUR).await;
    for queue in ["q", "r"] {
        let new = from(queue).start(Start::New);
        assert_eq!(new.nothing(&*store).await, None);
    }
    assert_eq!(delete(&*store, Some("q"), true).await, 1);
    assert_eq!(names(&from("q").claim(&*store).await), ["old"]);
    assert_eq!(from("r").nothing(&*store).await, None, "only there");
    assert_eq!(delete(&*store, None, true).await, 2);
    assert_eq!(names(&from("r").claim(&*store).await), ["elsewhere"]);
    assert_eq!(delete(&*store, Some("none"), true).await, 0);
}

pub(crate) async fn a_deleted_group_has_no_lease_and_no_dead_messages(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    make_dead(&*store, &claimed, "a").await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&claimed), ["b"]);
    delete(&*store, Some("q"), false).await;
    assert_eq!(
        complete(&*store, &claimed, "b").await,
        AckOutcome::LeaseLost
    );
    let again = from("q").batch(2).claim(&*store).await;
    assert_eq!(names(&again), ["a", "b"]);
    assert_eq!(fail(&*store, &again, "b").await, RELEASED);
    assert_eq!(names(&from("q").batch(2).claim(&*store).await), ["a", "b"]);
}
