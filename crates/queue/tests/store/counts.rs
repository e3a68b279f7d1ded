use std::time::Duration;

use wakeline_queue::{
    Queue, ack::AckStatus, browse::Span, counters::CounterRow, write_batch::WriteBatch,
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    calls::{HOUR, ack_of, address, from, message, of, push, push_each, whole_batch},
    test_store::TestStore,
};

const MINUTE: i64 = 60_000_000;

pub(crate) async fn counts_add_up_across_writes(store: TestStore) {
    let door = store.queue();
    let now = door.now_us().await.unwrap();
    let minute = now / MINUTE * MINUTE;
    let count = |queue: &str, minutes_ago: i64, pushed: i64, max_lag_us: i64| CounterRow {
        minute_us: minute - minutes_ago * MINUTE,
        queue: queue.into(),
        pushed,
        popped: 1,
        lag_us: max_lag_us,
        max_lag_us,
        ..CounterRow::default()
    };
    let write = async |counts| store.add_counts(counts).done().await;
    write(vec![count("q", 0, 1, 5), count("r", 0, 2, 7)]).await;
    write(vec![count("q", 0, 10, 3), count("q", 5, 100, 1)]).await;
    // Counters that are too old to be shown are deleted.
    write(vec![count("q", 60 * 24 * 365, 1_000, 1)]).await;
    write(vec![count("r", 0, 0, 0)]).await;

    let series = async |bucket: i64, queue: Option<&str>, by_queue| {
        let queue = queue.map(Into::into);
        let span = Span {
            from_us: 0,
            to_us: now + MINUTE,
            bucket_us: bucket,
        };
        let found = door.counts(span, &queue, by_queue).await.unwrap();
        let row = |count: CounterRow| (count.queue, count.pushed, count.popped, count.max_lag_us);
        found.into_iter().map(row).collect::<Vec<_>>()
    };
    let row = |queue: &str, pushed, popped, lag| (queue.to_owned(), pushed, popped, lag);
    assert_eq!(
        series(MINUTE, None, true).await,
        [row("q", 100, 1, 1), row("q", 11, 2, 5), row("r", 2, 2, 7)]
    );
    assert_eq!(
        series(MINUTE, None, false).await,
        [row("", 100, 1, 1), row("", 13, 4, 7)]
    );
    assert_eq!(
        series(i64::MAX / 2, Some("q"), true).await,
        [row("q", 111, 3, 5)]
    );
}

/// Everything that was counted lately: by queue, and of the server as a whole.
async fn counted(door: &Queue) -> (Vec<CounterRow>, CounterRow) {
    let now = door.now_us().await.unwrap();
    let span = Span {
        from_us: now - 10 * MINUTE,
        to_us: now + 10 * MINUTE,
        bucket_us: i64::MAX,
    };
    let by_queue = door.counts(span, &None, true).await;
    let whole = door.counts(span, &None, false).await;
    let whole = whole.unwrap().pop().unwrap_or_default();
    (by_queue.unwrap(), whole)
}

pub(crate) async fn a_call_about_several_queues_is_one_call_of_the_server(store: TestStore) {
    let door = store.queue();
    let now = door.now_us().await.unwrap();
    let count = |queue: &str, push_requests, pushed, store_failures| CounterRow {
        minute_us: now / MINUTE * MINUTE,
        queue: queue.into(),
        push_requests,
        pushed,
        store_failures,
        ..CounterRow::default()
    };
    let counts = vec![count("", 1, 0, 7), count("q", 1, 2, 0), count("r", 1, 3, 0)];
    store.add_counts(counts).done().await;
    let (by_queue, whole) = counted(&door).await;
    let by_queue = by_queue.iter();
    let shown = by_queue.map(|count| (&*count.queue, count.push_requests, count.pushed));
    assert!(shown.eq([("q", 1, 2), ("r", 1, 3)]));
    assert_eq!(
        (whole.push_requests, whole.pushed, whole.store_failures),
        (1, 5, 7)
    );
    let span = Span {
        from_us: 0,
        to_us: now + MINUTE,
        bucket_us: MINUTE,
    };
    let one = door.counts(span, &Some("r".into()), false).await;
    let one = one.unwrap().remove(0);
    assert_eq!((one.push_requests, one.pushed), (1, 3));
}

/// A node that has seen neither the push nor the pop knows only the partition.
pub(crate) async fn a_count_of_a_partition_goes_to_its_queue(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b"]).await;
    push(&*store, "q", "p2", &["c"]).await;
    let now = door.now_us().await.unwrap();
    let number = address(&pushed[0]).partition;
    let count = |queue: &str, partition| CounterRow {
        minute_us: now / MINUTE * MINUTE,
        queue: queue.into(),
        partition,
        completed: 1,
        ..CounterRow::default()
    };
    let counts = vec![
        count("", Some(number)),
        count("q", None),
        count("", Some(number + 1_000)),
    ];
    store.add_counts(counts).done().await;
    let (by_queue, whole) = counted(&door).await;
    assert_eq!(by_queue.len(), 1, "{by_queue:?}");
    let count = &by_queue[0];
    assert_eq!((count.completed, count.partitions), (2, Some(2)));
    assert_eq!(whole.completed, 2);
}

pub(crate) async fn the_door_counts_messages(store: TestStore) {
    let door = store.queue();
    door.write_counts().await;
    let sent = ["a", "b", "a"].map(|name| message("q", "p", name));
    door.push(sent.to_vec()).await.unwrap();
    let held = door.pop(from("q").batch(9).0, HOUR).await.unwrap();
    let claim = held.value.expect("two messages");
    let batch = WriteBatch::of_acks(vec![
        ack_of(claim.claim(), "a", AckStatus::Completed),
        ack_of(claim.claim(), "b", AckStatus::DeadLetter),
    ]);
    door.apply(batch).await.unwrap();
    door.write_counts().await;
    let (found, whole) = counted(&door).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let count = &found[0];
    assert_eq!((count.pushed, count.popped), (2, 2));
    assert_eq!((count.completed, count.failed, count.dead), (1, 1, 1));
    assert!(count.lag_us >= count.max_lag_us);
    assert_eq!((count.partitions_made, count.partitions), (1, Some(1)));
    for count in [count, &whole] {
        let calls = (count.push_requests, count.pop_requests, count.ack_requests);
        assert_eq!(calls, (1, 1, 1));
        assert_eq!((count.empty_pops, count.transactions), (0, 0));
    }
}

pub(crate) async fn the_door_counts_calls(store: TestStore) {
    let door = store.queue();
    let sent = [("q", "p1"), ("q", "p2"), ("r", "p")];
    let sent = sent.map(|(queue, partition)| message(queue, partition, "a"));
    door.push(sent.to_vec()).await.unwrap();
    let whole = whole_batch(vec![], vec![message("q", "p1", "b")]);
    door.apply(whole).await.unwrap();
    for request in [from("nowhere"), of(Some("nowhere"), None)] {
        let held = door.pop(request.0, Duration::ZERO).await.unwrap();
        assert!(held.value.is_none());
    }
    assert!(door.delete_queue("q".into()).await.unwrap());
    assert!(!door.delete_queue("q".into()).await.unwrap());
    door.write_counts().await;

    let (found, whole) = counted(&door).await;
    let of = |queue: &str| found.iter().find(|count| count.queue == queue).unwrap();
    let (q, r, nowhere) = (of("q"), of("r"), of("nowhere"));
    assert_eq!((q.push_requests, q.pushed, q.transactions), (1, 3, 1));
    assert_eq!((q.partitions_made, q.partitions_deleted), (2, 2));
    assert_eq!(q.partitions, None, "it is gone");
    assert_eq!((r.push_requests, r.pushed, r.transactions), (1, 1, 0));
    assert_eq!((r.partitions_made, r.partitions), (1, Some(1)));
    assert_eq!((nowhere.pop_requests, nowhere.empty_pops), (1, 1));
    assert_eq!((whole.push_requests, whole.transactions), (1, 1));
    assert_eq!((whole.pop_requests, whole.empty_pops), (2, 2));
    assert_eq!(whole.partitions_made, 3);
}

pub(crate) async fn failures_of_the_store_are_counted(store: TestStore) {
    let door = store.queue();
    // SQLite's connections are counted by the threads that have them.
    eventually("the connections to be counted", async || {
        store.load().connections > 0
    })
    .await;
    assert_eq!(store.load().failures, 0);
    for _ in 0..3 {
        let failed = store.rows("test", "SELECT nonsense", vec![]).await;
        failed.unwrap_err();
    }
    assert_eq!(store.load().failures, 3);
    door.write_counts().await;
    door.write_counts().await;
    let (found, whole) = counted(&door).await;
    assert_eq!((found.len(), whole.store_failures), (0, 3));
}
