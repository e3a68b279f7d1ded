use std::time::Duration;

use wakeline_queue::{claim::Source, store::Store, topic};
use wakeline_wake::WaitedKey;

use crate::{
    calls::{LEASE, assert_about, from, push},
    test_store::TestStore,
};

/// What is said of each of these places (queue, partition, group), in their order.
async fn ask(store: &dyn Store, keys: &[(&str, Option<&str>, &str)]) -> Vec<Option<Duration>> {
    let keys: Vec<_> = keys
        .iter()
        .map(|&(queue, partition, group)| {
            let source = Source::Queue {
                queue: queue.to_owned(),
                partition: partition.map(str::to_owned),
            };
            topic::key(&source, group)
        })
        .collect();
    let waiting = keys.iter().map(|key| WaitedKey {
        topic: key.topic.clone(),
        group: key.group.clone(),
        waiters: 1,
    });
    let dues = store.recheck(waiting.collect()).await.unwrap();
    assert!(dues.iter().all(|due| keys.contains(&due.key)));
    keys.iter()
        .map(|key| {
            let mut of_place = dues.iter().filter(|due| due.key == *key);
            let due = of_place.next().map(|due| due.after);
            assert!(of_place.next().is_none(), "one answer per key");
            due
        })
        .collect()
}

const NOW: Option<Duration> = Some(Duration::ZERO);

pub(crate) async fn places_of_a_queue(store: TestStore) {
    let keys = [
        ("q", None, "leased"),
        ("q", None, "done"),
        ("q", None, "behind"),
        ("q", None, "never came"),
        ("nowhere", None, "leased"),
    ];
    assert_eq!(ask(&*store, &keys).await, [None; 5]);
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(ask(&*store, &keys).await, [NOW, NOW, NOW, NOW, None]);
    from("q").group("leased").claim(&*store).await;
    let all = from("q").batch(2).auto_ack();
    all.group("done").claim(&*store).await;
    from("q").group("behind").auto_ack().claim(&*store).await;
    let due = ask(&*store, &keys).await;
    assert_about(due[0], LEASE);
    assert_eq!(due[1..], [None, NOW, NOW, None]);
    store.pass(LEASE).await;
    assert_eq!(ask(&*store, &keys).await, [NOW, None, NOW, NOW, None]);
    // A partition that the groups have not met.
    push(&*store, "q", "p2", &["a"]).await;
    assert_eq!(ask(&*store, &keys).await, [NOW, NOW, NOW, NOW, None]);
}

pub(crate) async fn places_of_a_partition(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "q", "p2", &["a"]).await;
    let keys = [
        ("q", Some("p"), "g"),
        ("q", Some("p2"), "g"),
        ("q", Some("p"), "never came"),
        ("q", Some("nowhere"), "g"),
        ("nowhere", Some("p"), "g"),
        ("q", None, "g"),
    ];
    let due = ask(&*store, &keys).await;
    // A group that nobody has seen may begin anywhere in a queue that is there.
    assert_eq!(due, [NOW, NOW, NOW, NOW, None, NOW]);
    from("q").partition("p").claim(&*store).await;
    let due = ask(&*store, &keys).await;
    assert_about(due[0], LEASE);
    assert_eq!(due[1..], [NOW, NOW, None, None, NOW]);
    from("q").partition("p2").auto_ack().claim(&*store).await;
    let due = ask(&*store, &keys).await;
    assert_eq!(due[1..5], [None, NOW, None, None]);
    push(&*store, "q", "p2", &["b"]).await;
    assert_eq!(ask(&*store, &keys).await[1], NOW);
    store.pass(LEASE).await;
    assert_eq!(ask(&*store, &keys).await[0], NOW);
}

pub(crate) async fn no_places_are_no_answer(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    assert_eq!(store.recheck(Vec::new()).await.unwrap(), []);
}
