use wakeline_testkit::CommitAlone;

use crate::ground::{ALL, Ground, of_queue};

pub(crate) async fn a_group_is_shown_where_it_is(ground: Ground) {
    ground.push("q", "p", &["a", "b", "c", "d"]).await;
    ground.push("r", "p", &["x"]).await;
    ground.complete("q", "g", 1).await;
    ground.bury_next("q", "g").await;
    let held = ground.pop("q", "g", 1).await.unwrap();
    ground.complete("r", "g", 1).await;

    let all = ground.browse().groups(100).await.unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|group| (&*group.name, &*group.queue, group.lag, group.cursors))
        .collect();
    assert_eq!(shown, [("g", "q", 2, 1), ("g", "r", 0, 1)]);
    assert_eq!((all[0].leased, all[0].lagging), (1, 1));
    assert!(all[0].oldest_us.is_some());
    assert_eq!(all[1].oldest_us, None);

    let readers = ground.browse().group_readers("g", None, 100).await;
    let readers = readers.unwrap();
    assert_eq!(readers.len(), 2);
    assert_eq!((&*readers[0].queue, readers[0].lag), ("q", 2));
    assert_eq!(readers[0].lease.map(|lease| lease.id), held.lease);
    assert_eq!(readers[1].lease, None);
    assert!(readers[0].consumed >= 1);
    let number = ground.browse().queue_number("r").await.unwrap();
    let there = ground.browse().group_readers("g", number, 100).await;
    assert_eq!(there.unwrap().len(), 1);
    assert_eq!(ground.browse().group_names(None, 9).await.unwrap(), ["g"]);
}

pub(crate) async fn who_lags_is_found_by_time(ground: Ground) {
    ground.push("q", "p", &["a"]).await;
    ground.push("q", "done", &["a"]).await;
    let first = ground.pop("q", "g", 1).await.unwrap();
    ground.complete("q", "g", 1).await;
    let lagging = ground.browse().lagging_groups(0, 100).await.unwrap();
    assert_eq!(lagging.len(), 1, "{lagging:?}");
    assert_eq!(lagging[0].partition, first.parts[0].partition);
    assert_eq!(lagging[0].lag, 1);
    let hour = 3_600_000_000;
    assert_eq!(ground.browse().lagging_groups(hour, 100).await.unwrap(), []);
}

pub(crate) async fn a_deleted_queue_is_shown_no_more(ground: Ground) {
    ground.push("q", "p", &["a", "b"]).await;
    ground.bury_next("q", "g").await;
    let deleted = ground
        .store
        .delete_queue("q".into())
        .commit_alone()
        .await
        .unwrap();
    assert_eq!(deleted, Some(1));
    assert_eq!(ground.browse().groups(9).await.unwrap(), []);
    assert_eq!(ground.browse().lagging_groups(0, 9).await.unwrap(), []);
    let seen = ground.browse().overview().await.unwrap();
    assert_eq!((seen.queues, seen.partitions), (0, 0));
    for filter in [
        of_queue("q"),
        wakeline_queue::browse::MessageFilter::default(),
    ] {
        for status in [
            None,
            Some(wakeline_queue::browse::MessageStatus::DeadLetter),
        ] {
            let none = ground.browse().messages(&filter, status, ALL).await;
            assert_eq!(none.unwrap().total, 0);
        }
    }
}
