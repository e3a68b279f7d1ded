//! Pops by namespace and task.

use std::time::Duration;

use wakeline_queue::topic;

use crate::{
    calls::{
        HOUR, LEASE, Request, assert_about, complete, configure, from, message, names, of, push,
        recheck,
    },
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

pub(crate) async fn a_pop_finds_queues_by_namespace_task_or_both(store: TestStore) {
    for queue in ["a.x", "a.y", "b.x", "c"] {
        push(&*store, queue, "p", &[queue]).await;
    }
    for (namespace, task, expected) in [
        (Some("a"), Some("y"), vec!["a.y"]),
        (Some("a"), None, vec!["a.x", "a.y"]),
        (None, Some("x"), vec!["a.x", "b.x"]),
        (Some("c"), None, vec!["c"]),
        (Some("b"), Some("y"), vec![]),
        (Some("d"), None, vec![]),
    ] {
        let group = format!("{namespace:?} {task:?}");
        let request = of(namespace, task).group(&group).auto_ack();
        let mut seen = Vec::new();
        for _ in &expected {
            let claimed = request.claim_soon(&*store).await;
            assert_eq!(names(&claimed), [&*claimed.queue]);
            seen.push(claimed.queue);
        }
        seen.sort();
        assert_eq!(seen, expected, "{group}");
        assert_eq!(request.nothing(&*store).await, None, "{group}");
    }
}

pub(crate) async fn a_claim_is_of_one_queue(store: TestStore) {
    for queue in ["n.a", "n.b"] {
        for partition in ["p1", "p2"] {
            push(&*store, queue, partition, &[queue]).await;
        }
    }
    let all = of(Some("n"), None).batch(9).partitions(9);
    let claimed = all.claim(&*store).await;
    assert_eq!(claimed.parts.len(), 2);
    assert_eq!((&*claimed.namespace, &*claimed.group), ("n", "g"));
    let other = all.claim(&*store).await;
    assert_ne!(claimed.queue, other.queue);
    assert_about(of(Some("n"), None).nothing(&*store).await, LEASE);
    store.pass(LEASE / 2).await;
    complete(&*store, &claimed, names(&claimed)[0]).await;
    assert_about(of(Some("n"), None).nothing(&*store).await, LEASE / 2);
}

/// The group knows both queues, and each has a message: `n.low` first, `n.high` later.
async fn in_both(store: &TestStore, between: Duration) -> Request {
    for (queue, priority) in [("n.low", 0), ("n.high", 10)] {
        configure(&**store, queue, |options| options.priority = priority).await;
        push(&**store, queue, "p", &["first"]).await;
    }
    let request = of(Some("n"), None).auto_ack();
    for _ in 0..2 {
        request.claim_soon(&**store).await;
    }
    assert_eq!(request.nothing(&**store).await, None);
    push(&**store, "n.low", "p", &["low"]).await;
    store.pass(between).await;
    push(&**store, "n.high", "p", &["high"]).await;
    request
}

pub(crate) async fn the_queue_with_the_higher_priority_is_claimed_first(store: TestStore) {
    let request = in_both(&store, Duration::from_secs(1)).await;
    assert_eq!(names(&request.claim(&*store).await), ["high"]);
    assert_eq!(names(&request.claim(&*store).await), ["low"]);
}

pub(crate) async fn a_long_wait_is_claimed_before_a_higher_priority(store: TestStore) {
    let request = in_both(&store, HOUR).await;
    assert_eq!(names(&request.claim(&*store).await), ["low"]);
    assert_eq!(names(&request.claim(&*store).await), ["high"]);
}

pub(crate) async fn a_push_wakes_pops_by_namespace_and_task(store: TestStore) {
    let door = TestDoor::open(&store).await;
    for (name, request) in [
        ("a", of(Some("n"), None)),
        ("b", of(None, Some("t"))),
        ("c", of(Some("n"), Some("t"))),
    ] {
        let waiting = door.parked(request.auto_ack()).await;
        let pushed = door.queue.push(vec![message("n.t", "p", name)]).await;
        assert!(pushed.unwrap()[0].is_ok());
        assert_eq!(names(&taken(waiting).await), [name]);
        // Each of the three has its own wait key, and they are one group.
        assert_eq!(from("n.t").nothing(&*store).await, None);
    }
}

pub(crate) async fn pops_by_namespace_and_task_are_rechecked(store: TestStore) {
    push(&*store, "n.t", "p", &["a"]).await;
    let requests = [
        of(Some("n"), None),
        of(None, Some("t")),
        of(Some("n"), Some("t")),
        of(Some("t"), None),
        of(None, Some("n")),
    ];
    let keys = requests.map(|request| request.0.key());
    let now = Some(Duration::ZERO);
    let due = recheck(&*store, &keys).await;
    assert_eq!(due, [now, now, now, None, None]);
    let claimed = of(Some("n"), None).claim(&*store).await;
    let due = recheck(&*store, &keys).await;
    assert_about(due[0], LEASE);
    assert_about(due[2], LEASE);
    complete(&*store, &claimed, "a").await;
    assert_eq!(recheck(&*store, &keys).await, [None; 5]);
    assert!(topic::source(&keys[0].topic).is_some());
}
