//! Pops by namespace and task.

use std::time::Duration;

use wakeline_queue::{ack::AckStatus, options::Options, topic};
use wakeline_wake::WaitedKey;

use crate::{
    calls::{LEASE, Request, ack, assert_about, configure, from, names, of, push},
    test_door::{TestDoor, taken},
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn auto(request: Request) -> Request {
    request.auto_ack()
}

pub(crate) async fn by_namespace_by_task_and_by_both(store: TestStore) {
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
        let request = auto(of(namespace, task).group(&group));
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
    let claimed = of(Some("n"), None)
        .batch(9)
        .partitions(9)
        .claim(&*store)
        .await;
    assert_eq!(claimed.parts.len(), 2);
    assert_eq!((&*claimed.namespace, &*claimed.group), ("n", "g"));
    let other = of(Some("n"), None)
        .batch(9)
        .partitions(9)
        .claim(&*store)
        .await;
    assert_ne!(claimed.queue, other.queue);
    assert_about(of(Some("n"), None).nothing(&*store).await, LEASE);
    store.pass(LEASE / 2).await;
    let transaction = names(&claimed)[0].to_owned();
    ack(&*store, &claimed, &transaction, AckStatus::Completed).await;
    assert_about(of(Some("n"), None).nothing(&*store).await, LEASE / 2);
}

/// Both are known to the group, and there is something in both: first in one, then in the other.
async fn in_both(store: &TestStore, between: Duration) -> Request {
    for (queue, priority) in [("n.low", 0), ("n.high", 10)] {
        let options = Options {
            priority,
            ..Options::default()
        };
        configure(&**store, queue, options).await;
        push(&**store, queue, "p", &["first"]).await;
    }
    let request = auto(of(Some("n"), None));
    for _ in 0..2 {
        request.claim_soon(&**store).await;
    }
    assert_eq!(request.nothing(&**store).await, None);
    push(&**store, "n.low", "p", &["low"]).await;
    store.pass(between).await;
    push(&**store, "n.high", "p", &["high"]).await;
    request
}

pub(crate) async fn the_higher_priority_comes_first(store: TestStore) {
    let request = in_both(&store, Duration::from_secs(1)).await;
    assert_eq!(names(&request.claim(&*store).await), ["high"]);
    assert_eq!(names(&request.claim(&*store).await), ["low"]);
}

pub(crate) async fn who_has_waited_long_comes_before_a_higher_priority(store: TestStore) {
    let request = in_both(&store, HOUR).await;
    assert_eq!(names(&request.claim(&*store).await), ["low"]);
    assert_eq!(names(&request.claim(&*store).await), ["high"]);
}

pub(crate) async fn a_push_answers_who_waits_for_its_namespace_or_task(store: TestStore) {
    let door = TestDoor::open(&store).await;
    for (number, request) in [
        of(Some("n"), None),
        of(None, Some("t")),
        of(Some("n"), Some("t")),
    ]
    .into_iter()
    .enumerate()
    {
        let waiting = door.parked(auto(request)).await;
        let name = number.to_string();
        let one = crate::calls::message("n.t", "p", &name);
        door.queue.push(vec![one]).await.unwrap();
        assert_eq!(names(&taken(waiting).await), [name]);
        // Each of the three has its own place, and they are one group.
        assert_eq!(from("n.t").nothing(&*door.store.inner).await, None);
    }
}

pub(crate) async fn they_are_rechecked(store: TestStore) {
    push(&*store, "n.t", "p", &["a"]).await;
    let requests = [
        of(Some("n"), None),
        of(None, Some("t")),
        of(Some("n"), Some("t")),
        of(Some("t"), None),
        of(None, Some("n")),
    ];
    let ask = async || {
        let keys: Vec<_> = requests.iter().map(|request| request.0.key()).collect();
        let waiting = keys.iter().map(|key| WaitedKey {
            topic: key.topic.clone(),
            group: key.group.clone(),
            waiters: 1,
        });
        let due = store.recheck(waiting.collect()).await.unwrap();
        let of_place = |key: &wakeline_wake::WaitKey| {
            due.iter().find(|due| due.key == *key).map(|due| due.after)
        };
        keys.iter().map(of_place).collect::<Vec<_>>()
    };
    let now = Some(Duration::ZERO);
    assert_eq!(ask().await, [now, now, now, None, None]);
    let claimed = of(Some("n"), None).claim(&*store).await;
    let due = ask().await;
    assert_about(due[0], LEASE);
    assert_about(due[2], LEASE);
    ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!(ask().await, [None; 5]);
    assert!(topic::source(&requests[0].0.key().topic).is_some());
}
