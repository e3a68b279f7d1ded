use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, of_queue};

pub(crate) async fn a_group_is_shown_where_it_is(fixture: Fixture) {
    fixture.push("q", "p", &["a", "b", "c", "d"]).await;
    fixture.push("r", "p", &["x"]).await;
    fixture.complete("q", "g", 1).await;
    fixture.make_next_dead_letter("q", "g").await;
    let held = fixture.pop("q", "g", 1).await.unwrap();
    fixture.complete("r", "g", 1).await;

    let all = fixture.queue.groups(100).await.unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|group| (&*group.name, &*group.queue, group.lag, group.cursors))
        .collect();
    assert_eq!(shown, [("g", "q", 2, 1), ("g", "r", 0, 1)]);
    assert_eq!((all[0].leased, all[0].lagging), (1, 1));
    assert!(all[0].oldest_us.is_some());
    assert_eq!(all[1].oldest_us, None);

    let readers = fixture.queue.group_readers("g", None, 100).await;
    let readers = readers.unwrap();
    assert_eq!(readers.len(), 2);
    assert_eq!((&*readers[0].queue, readers[0].lag), ("q", 2));
    assert_eq!(readers[0].lease.map(|lease| lease.id), held.lease);
    assert_eq!(readers[1].lease, None);
    assert!(readers[0].consumed >= 1);
    let number = fixture.queue.queue_number("r").await.unwrap();
    let there = fixture.queue.group_readers("g", number, 100).await;
    assert_eq!(there.unwrap().len(), 1);
    assert_eq!(fixture.queue.group_names(None, 9).await.unwrap(), ["g"]);
}

pub(crate) async fn who_lags_is_found_by_time(fixture: Fixture) {
    fixture.push("q", "p", &["a"]).await;
    fixture.push("q", "done", &["a"]).await;
    let first = fixture.pop("q", "g", 1).await.unwrap();
    fixture.complete("q", "g", 1).await;
    let lagging = fixture.queue.lagging_groups(0, 100).await.unwrap();
    assert_eq!(lagging.len(), 1, "{lagging:?}");
    assert_eq!(lagging[0].partition, first.parts[0].partition);
    assert_eq!(lagging[0].lag, 1);
    let hour = 3_600_000_000;
    assert_eq!(fixture.queue.lagging_groups(hour, 100).await.unwrap(), []);
}

pub(crate) async fn a_deleted_queue_is_shown_no_more(fixture: Fixture) {
    fixture.push("q", "p", &["a", "b"]).await;
    fixture.make_next_dead_letter("q", "g").await;
    let deleted = fixture.store.delete_queue("q".into()).done().await;
    assert_eq!(deleted, Some(1));
    assert_eq!(fixture.queue.groups(9).await.unwrap(), []);
    assert_eq!(fixture.queue.lagging_groups(0, 9).await.unwrap(), []);
    let seen = fixture.queue.overview().await.unwrap();
    assert_eq!((seen.queues, seen.partitions), (0, 0));
    for filter in [
        of_queue("q"),
        wakeline_queue::browse::MessageFilter::default(),
    ] {
        for status in [
            None,
            Some(wakeline_queue::browse::MessageStatus::DeadLetter),
        ] {
            let none = fixture.queue.messages(&filter, status, ALL).await;
            assert_eq!(none.unwrap().total, 0);
        }
    }
}
