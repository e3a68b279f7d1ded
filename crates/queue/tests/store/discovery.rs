use std::{collections::BTreeSet, time::Duration};

use crate::{
    calls::{from, message, names, part, push, push_all},
    test_store::TestStore,
};

/// More than two claims give a group cursors in.
const MANY: usize = 1_050;

pub(crate) async fn a_pop_from_an_unknown_queue_finds_and_creates_nothing(store: TestStore) {
    assert_eq!(from("q").nothing(&*store).await, None);
    assert_eq!(from("q").partition("p").nothing(&*store).await, None);
    for table in ["queue", "queue_partition", "queue_group", "queue_cursor"] {
        assert_eq!(store.database.count(table).await, 0, "{table}");
    }
    push(&*store, "q", "p", &["a"]).await;
    assert_eq!(names(&from("q").claim(&*store).await), ["a"]);
}

pub(crate) async fn a_pop_from_an_unknown_partition_finds_and_creates_nothing(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    let other = || from("q").partition("other");
    assert_eq!(other().nothing(&*store).await, None);
    assert_eq!(store.database.count("queue_partition").await, 1);
    push(&*store, "q", "other", &["b"]).await;
    assert_eq!(names(&other().claim(&*store).await), ["b"]);
}

pub(crate) async fn a_group_gets_cursors_in_many_partitions_by_several_claims(store: TestStore) {
    let partitions: BTreeSet<String> = (0..MANY).map(|number| format!("p{number}")).collect();
    let sent = partitions.iter().map(|name| message("q", name, "a"));
    push_all(&*store, sent.collect()).await;
    let mut seen = BTreeSet::new();
    for _ in 0..MANY {
        let claimed = from("q").auto_ack().claim(&*store).await;
        assert!(seen.insert(part(&claimed).partition.clone()));
    }
    assert_eq!(seen, partitions);
    assert_eq!(from("q").nothing(&*store).await, None);
    // The group has caught up with all of them; the next message is found at once.
    push(&*store, "q", "p7", &["b"]).await;
    push(&*store, "q", "new", &["c"]).await;
    store.pass(Duration::from_millis(1)).await;
    for partition in ["p7", "new"] {
        let claimed = from("q").auto_ack().claim(&*store).await;
        assert_eq!(part(&claimed).partition, partition);
    }
}

pub(crate) async fn a_pop_gets_no_messages_of_other_queues(store: TestStore) {
    push(&*store, "q", "p", &["a"]).await;
    push(&*store, "r", "p", &["b"]).await;
    push(&*store, "r", "p2", &["c"]).await;
    assert_eq!(names(&from("q").auto_ack().claim(&*store).await), ["a"]);
    assert_eq!(from("q").nothing(&*store).await, None);
    assert_eq!(from("q").partition("p2").nothing(&*store).await, None);
}
