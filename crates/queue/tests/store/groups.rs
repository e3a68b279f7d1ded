use wakeline_queue::browse::{MessageFilter, MessageStatus};
use wakeline_testkit::CommitAlone;

use crate::{
    calls::{ALL, HOUR_US, consume, from, make_next_dead, of_queue, push_each},
    test_store::TestStore,
};

pub(crate) async fn a_group_is_listed_with_its_lag(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b", "c", "d"]).await;
    push_each(&*store, "r", "p", &["x"]).await;
    consume(&*store, "q", "g", 1).await;
    make_next_dead(&*store, "q", "g").await;
    let held = from("q").claim_soon(&*store).await;
    consume(&*store, "r", "g", 1).await;

    let all = door.groups(100).await.unwrap();
    let rows = all.iter();
    let rows = rows.map(|group| (&*group.name, &*group.queue, group.lag, group.cursors));
    assert!(rows.eq([("g", "q", 2, 1), ("g", "r", 0, 1)]), "{all:?}");
    assert_eq!((all[0].leased, all[0].lagging), (1, 1));
    assert!(all[0].oldest_us.is_some());
    assert_eq!(all[1].oldest_us, None);

    let readers = door.group_readers("g", None, 100).await.unwrap();
    assert_eq!(readers.len(), 2);
    assert_eq!((&*readers[0].queue, readers[0].lag), ("q", 2));
    assert_eq!(readers[0].lease.map(|lease| lease.id), held.lease);
    assert_eq!(readers[1].lease, None);
    assert!(readers[0].consumed >= 1);
    let number = door.queue_number("r").await.unwrap();
    let there = door.group_readers("g", number, 100).await;
    assert_eq!(there.unwrap().len(), 1);
    assert_eq!(door.group_names(None, 9).await.unwrap(), ["g"]);
}

pub(crate) async fn lagging_groups_are_found_by_waiting_time(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a"]).await;
    push_each(&*store, "q", "done", &["a"]).await;
    let first = from("q").claim_soon(&*store).await;
    consume(&*store, "q", "g", 1).await;
    let lagging = door.lagging_groups(0, 100).await.unwrap();
    assert_eq!(lagging.len(), 1, "{lagging:?}");
    assert_eq!(lagging[0].partition, first.parts[0].partition);
    assert_eq!(lagging[0].lag, 1);
    assert_eq!(door.lagging_groups(HOUR_US, 100).await.unwrap(), []);
}

pub(crate) async fn a_deleted_queue_is_not_listed(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b"]).await;
    make_next_dead(&*store, "q", "g").await;
    assert_eq!(store.delete_queue("q".into()).done().await, Some(1));
    assert_eq!(door.groups(9).await.unwrap(), []);
    assert_eq!(door.lagging_groups(0, 9).await.unwrap(), []);
    let found = door.overview().await.unwrap();
    assert_eq!((found.queues, found.partitions), (0, 0));
    for filter in [of_queue("q"), MessageFilter::default()] {
        for status in [None, Some(MessageStatus::DeadLetter)] {
            let none = door.messages(&filter, status, ALL).await;
            assert_eq!(none.unwrap().total, 0);
        }
    }
}
