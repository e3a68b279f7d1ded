//! Which groups a write wakes: exactly those that it makes ready.

use wakeline_queue::ack::AckStatus;
use wakeline_wake::{Wake, WakeMode};

use crate::{
    calls::{ack, from, message, push, release_claim, try_push},
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

fn one(partition: &str, group: &str) -> (String, String, u32) {
    (partition.to_owned(), group.to_owned(), 1)
}

pub(crate) async fn a_new_partition_wakes_every_group(store: TestStore) {
    let wakes = push(&*store, "q", "p1", &["a", "b"]).await;
    assert_eq!(counts(&wakes), [one("p1", "*")]);
    from("q").group("one").claim(&*store).await;
    let wakes = push(&*store, "q", "p2", &["a"]).await;
    assert_eq!(counts(&wakes), [one("p2", "*")]);
}

pub(crate) async fn a_group_that_has_caught_up_is_woken(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for group in ["auto", "nacked", "acked", "behind"] {
        let request = from("q").group(group);
        match group {
            "auto" => drop(request.auto_ack().claim(&*store).await),
            "behind" => {
                let claimed = request.claim(&*store).await;
                release_claim(&*store, &claimed).await;
            }
            "nacked" => {
                let claimed = request.claim(&*store).await;
                ack(&*store, &claimed, "a", AckStatus::DeadLetter).await;
            }
            _ => {
                let claimed = request.claim(&*store).await;
                let acked = ack(&*store, &claimed, "a", AckStatus::Completed).await;
                assert_eq!(acked.wakes, [], "nothing is left");
            }
        }
    }
    let wakes = push(&*store, "q", "p", &["b", "c"]).await;
    assert_eq!(
        counts(&wakes),
        [one("p", "acked"), one("p", "auto"), one("p", "nacked")]
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

pub(crate) async fn a_duplicate_wakes_nobody(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*store).await;
    let duplicate = vec![message("q", "p", "a")];
    let wakes = try_push(&*store, duplicate).await.wakes;
    assert_eq!(counts(&wakes), []);
    // With something new behind the duplicate it does.
    let mixed = vec![message("q", "p", "a"), message("q", "p", "b")];
    let wakes = try_push(&*store, mixed).await.wakes;
    assert_eq!(counts(&wakes), [one("p", "g")]);
}

pub(crate) async fn a_leased_partition_wakes_by_its_ack_and_not_by_a_push(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let claimed = from("q").batch(2).claim(&*store).await;
    assert_eq!(counts(&push(&*store, "q", "p", &["c"]).await), []);
    let part = ack(&*store, &claimed, "a", AckStatus::Completed).await;
    assert_eq!(part.wakes, []);
    let whole = ack(&*store, &claimed, "b", AckStatus::Completed).await;
    assert_eq!(counts(&whole.wakes), [one("p", "g")]);
}

pub(crate) async fn each_partition_of_a_push_is_woken(store: TestStore) {
    push(&*store, "q", "old", &["a"]).await;
    push(&*store, "q", "behind", &["a"]).await;
    for partition in ["old", "behind"] {
        let request = from("q").partition(partition).auto_ack();
        request.claim(&*store).await;
    }
    push(&*store, "q", "behind", &["b"]).await;
    let keys = ["new", "old", "behind", "newer", "old", "new"];
    let messages: Vec<_> = (0..)
        .zip(keys)
        .map(|(number, partition)| message("q", partition, &format!("t{number}")))
        .collect();
    let wakes = try_push(&*store, messages).await.wakes;
    assert_eq!(
        counts(&wakes),
        [one("new", "*"), one("newer", "*"), one("old", "g")]
    );
}

pub(crate) async fn a_failure_wakes_its_group(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    for status in [AckStatus::Failed, AckStatus::Retry] {
        let claimed = from("q").claim(&*store).await;
        let acked = ack(&*store, &claimed, "a", status).await;
        assert_eq!(counts(&acked.wakes), [one("p", "g")]);
    }
    let claimed = from("q").claim(&*store).await;
    let acked = ack(&*store, &claimed, "a", AckStatus::DeadLetter).await;
    assert_eq!(acked.wakes, [], "nothing is left");
}

pub(crate) async fn an_auto_ack_wakes_for_what_it_leaves(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c"]).await;
    let claimed = from("q").auto_ack().claim(&*store).await;
    let left = ("p".to_owned(), "g".to_owned(), 2);
    assert_eq!(counts(&claimed.wakes()), [left]);
    let claimed = from("q").auto_ack().batch(2).claim(&*store).await;
    assert_eq!(claimed.wakes(), []);
}
