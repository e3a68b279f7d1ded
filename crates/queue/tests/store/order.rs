use std::time::Duration;

use wakeline_queue::ack::AckStatus;

use crate::{
    calls::{ack, from, names, part, push},
    test_store::TestStore,
};

pub(crate) async fn a_batch_is_taken_in_order_and_the_next_goes_on(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d", "e"]).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let claimed = from("q").batch(2).claim(&*store).await;
        let last = part(&claimed)
            .messages
            .last()
            .unwrap()
            .transaction_id
            .clone();
        seen.push(names(&claimed).join(""));
        ack(&*store, &claimed, &last, AckStatus::Completed).await;
    }
    assert_eq!(seen, ["ab", "cd", "e"]);
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn groups_are_independent(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let one = from("q").group("one").claim(&*store).await;
    let two = from("q").group("two").batch(2).claim(&*store).await;
    assert_eq!((names(&one), names(&two)), (vec!["a"], vec!["a", "b"]));
    ack(&*store, &two, "b", AckStatus::Completed).await;
    ack(&*store, &one, "a", AckStatus::Failed).await;
    assert_eq!(from("q").group("two").nothing(&*store).await, None);
    assert_eq!(names(&from("q").group("one").claim(&*store).await), ["a"]);
}

pub(crate) async fn a_group_that_comes_later_sees_everything(store: TestStore) {
    push(&*store, "q", "p1", &["a"]).await;
    from("q").group("early").auto_ack().claim(&*store).await;
    push(&*store, "q", "p2", &["b"]).await;
    push(&*store, "q", "p1", &["c"]).await;
    let late = || from("q").group("late").batch(9).auto_ack();
    let one = late().partition("p1").claim(&*store).await;
    assert_eq!(names(&one), ["a", "c"]);
    let two = late().claim(&*store).await;
    assert_eq!((names(&two), &*part(&two).partition), (vec!["b"], "p2"));
    assert_eq!(late().nothing(&*store).await, None);
}

pub(crate) async fn partitions_are_served_longest_ready_first(store: TestStore) {
    for name in ["p1", "p2", "p3"] {
        push(&*store, "q", name, &["a"]).await;
        from("q").auto_ack().claim(&*store).await;
    }
    // A busy partition does not keep the others waiting.
    for (name, transactions) in [("p2", ["b", "c"]), ("p3", ["b", "c"]), ("p1", ["b", "c"])] {
        store.pass(Duration::from_millis(1)).await;
        push(&*store, "q", name, &transactions).await;
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        store.pass(Duration::from_millis(1)).await;
        let claimed = from("q").claim(&*store).await;
        let name = names(&claimed)[0].to_owned();
        ack(&*store, &claimed, &name, AckStatus::Completed).await;
        seen.push(format!("{}{name}", part(&claimed).partition));
    }
    assert_eq!(seen, ["p2b", "p3b", "p1b", "p2c", "p3c", "p1c"]);
}
