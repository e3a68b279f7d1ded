//! Which groups a write wakes: exactly those that it makes ready.

use wakeline_queue::ack::AckStatus;
use wakeline_wake::{Wake, WakeMode};

use crate::{
    calls::{DEAD, ack, from, make_dead, message, push, release_claim, try_push},
    test_store::TestStore,
};

/// Partition, group (or all) and count of each wake, sorted.
fn counts(wakes: &[Wake]) -> Vec<(String, String, u32)> {
    let mut counts: Vec<_> = wakes
        .iter()
        .map(|wake| {
            let parts: Vec<&str> = wake.topics[0].parts().collect();
            let [queue, partition] = parts[..] else {
                panic!("{wake:?}");
            };
            let others: Vec<Vec<&str>> = wake.topics[1..]
                .iter()
                .map(|topic| topic.parts().collect())
                .collect();
            // A queue's name is its namespace, as far as it has no dot.
            assert_eq!(queue, "q");
            assert_eq!(others, [vec!["q"], vec!["", "namespace", "q"]]);
            let WakeMode::Count(count) = wake.mode else {
                panic!("{wake:?}");
            };
            let group = wake.group.as_ref().map_or("*", |group| group.name());
            (partition.to_owned(), group.to_owned(), count)
        })
        .collect();
    counts.sort();
    counts
}

fn once(partition: &str, group: &str) -> (String, String, u32) {
    (partition.to_owned(), group.to_owned(), 1)
}

pub(crate) async fn a_new_partition_wakes_every_group(store: TestStore) {
    let wakes = push(&*store, "q", "p1", &["a", "b"]).await;
    assert_eq!(counts(&wakes), [once("p1", "*")]);
    from("q").group("one").claim(&*store).await;
    let wakes = push(&*store, "q", "p2", &["a"]).await;
    assert_eq!(counts(&wakes), [once("p2", "*")]);
}

pub(crate) async fn a_group_that_has_caught_up_is_woken(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for group in ["auto", "nacked", "acked", "behind"] {
        let mut request = from("q").group(group);
        if group == "auto" {
            request = request.auto_ack();
        }
        let claimed = request.claim(&*store).await;
        match group {
            "behind" => assert!(release_claim(&*store, &claimed).await),
            "nacked" => assert_eq!(make_dead(&*store, &claimed, "a").await, DEAD),
            "acked" => {
                let (_, wakes) = ack(&*store, &claimed, "a", AckStatus::Completed).await;
                assert_eq!(wakes, [], "nothing is left");
            }
            _ => {}
        }
    }
    let wakes = push(&*store, "q", "p", &["b", "c"]).await;
    assert_eq!(
        counts(&wakes),
        [once("p", "acked"), once("p", "auto"), once("p", "nacked")]
    );
    assert_eq!(counts(&push(&*store, "q", "p", &["d"]).await), []);
}

pub(crate) async fn a_group_that_is_behind_is_not_woken(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    assert_eq!(counts(&push(&*store, "q", "p", &["c"]).await), []);
    from("q").auto_ack().claim(&*store).await;
    assert_eq!(counts(&push(&*store, "q", "p", &["d"]).await), []);
    from("q").auto_ack().batch(2).claim(&*store).await;
    assert_eq!(counts(&push(&*store, "q", "p", &["e"]).await), []);
}

pub(crate) async fn a_duplicate_wakes_no_group(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*store).await;
    let duplicate = vec![message("q", "p", "a")];
    let wakes = try_push(&*store, duplicate).await.wakes;
    assert_eq!(counts(&wakes), []);
    // With something new behind the duplicate it does.
    let mixed = vec![message("q", "p", "a"), message("q", "p", "b")];
    let wakes = try_push(&*store, mixed).await.wakes;
    assert_eq!(counts(&wakes), [once("p", "g")]);
}

pub(crate) async fn a_push_to_a_leased_partition_does_not_wake_but_its_ack_does(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(counts(&push(&*store, "q", "p", &["c"]).await), []);
    let (_, wakes) = ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!(wakes, []);
    let (_, wakes) = ack(&*store, &claimed, "b", AckStatus::Completed).await;
    assert_eq!(counts(&wakes), [once("p", "g")]);
}

pub(crate) async fn each_partition_of_a_push_is_woken(store: TestStore) {
    push(&*store, "q", "old", &["a"]).await;
    push(&*store, "q", "behind", &["a"]).await;
    from("q")
        .batch(9)
        .partitions(9)
        .auto_ack()
        .claim(&*store)
        .await;
    push(&*store, "q", "behind", &["b"]).await;
    let keys = ["new", "old", "behind", "newer", "old", "new"];
    let messages: Vec<_> = (0..)
        .zip(keys)
        .map(|(number, partition)| message("q", partition, &format!("t{number}")))
        .collect();
    let wakes = try_push(&*store, messages).await.wakes;
    assert_eq!(
        counts(&wakes),
        [once("new", "*"), once("newer", "*"), once("old", "g")]
    );
}

pub(crate) async fn a_failure_wakes_its_group(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for status in [AckStatus::Failed, AckStatus::Retry] {
        let claimed = from("q").claim(&*store).await;
        let (_, wakes) = ack(&*store, &claimed, "a", status).await;
        assert_eq!(counts(&wakes), [once("p", "g")]);
    }
    let claimed = from("q").claim(&*store).await;
    let (_, wakes) = ack(&*store, &claimed, "a", AckStatus::DeadLetter).await;
    assert_eq!(wakes, [], "nothing is left");
}

pub(crate) async fn an_auto_ack_wakes_for_the_remaining_messages(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").auto_ack().claim(&*store).await;
    let left = ("p".to_owned(), "g".to_owned(), 2);
    assert_eq!(counts(&claimed.wakes()), [left]);
    let claimed = from("q").auto_ack().batch(2).claim(&*store).await;
    assert_eq!(claimed.wakes(), []);
}
