use std::time::Duration;

use crate::{
    calls::{complete, fail, from, names, part, push},
    test_store::TestStore,
};

pub(crate) async fn a_batch_is_claimed_in_order_and_the_next_one_follows(store: TestStore) {
    push(&*store, "q", "p", &["a", "b", "c", "d", "e"]).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let claimed = from("q").batch(2).claim(&*store).await;
        let names = names(&claimed);
        complete(&*store, &claimed, names.last().unwrap()).await;
        seen.push(names.join(""));
    }
    assert_eq!(seen, ["ab", "cd", "e"]);
    assert_eq!(from("q").nothing(&*store).await, None);
}

pub(crate) async fn groups_are_independent(store: TestStore) {
    push(&*store, "q", "p", &["a", "b"]).await;
    let one = from("q").group("one").claim(&*store).await;
    let two = from("q").group("two").batch(2).claim(&*store).await;
    assert_eq!((names(&one), names(&two)), (vec!["a"], vec!["a", "b"]));
    complete(&*store, &two, "b").await;
    fail(&*store, &one, "a").await;
    assert_eq!(from("q").group("two").nothing(&*store).await, None);
    assert_eq!(names(&from("q").group("one").claim(&*store).await), ["a"]);
}

pub(crate) async fn a_new_group_gets_all_messages(store: TestStore) {
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

pub(crate) async fn the_partition_that_is_ready_longest_is_claimed_first(store: TestStore) {
    for name in ["p1", "p2", "p3"] {
        push(&*store, "q", name, &["a"]).await;
        from("q").auto_ack().claim(&*store).await;
    }
    // A busy partition does not delay the others.
    for (name, transactions) in [("p2", ["b", "c"]), ("p3", ["b", "c"]), ("p1", ["b", "c"])] {
        store.pass(Duration::from_millis(1)).await;
        push(&*store, "q", name, &transactions).await;
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        store.pass(Duration::from_millis(1)).await;
        let claimed = from("q").claim(&*store).await;
        let name = names(&claimed)[0].to_owned();
        complete(&*store, &claimed, &name).await;
        seen.push(format!("{}{name}", part(&claimed).partition));
    }
    assert_eq!(seen, ["p2b", "p3b", "p1b", "p2c", "p3c", "p1c"]);
}
