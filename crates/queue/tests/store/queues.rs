use serde_json::{Value, json};
use wakeline_queue::browse::{MessageCounts, QUEUE_MODE, QueueFilter};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    calls::{ALL, address, complete, consume, from, make_next_dead, page, push, push_each},
    http_calls::Routes,
    test_store::TestStore,
};

pub(crate) async fn a_queue_counts_each_message_once(store: TestStore) {
    let door = store.queue();
    let pushed = push_each(&*store, "q", "p", &["a", "b", "c", "d", "e", "f", "g"]).await;
    push_each(&*store, "q", "other", &["x"]).await;
    push_each(&*store, "elsewhere", "p", &["x", "y"]).await;
    assert_eq!(consume(&*store, "q", QUEUE_MODE, 1).await.len(), 1);
    let counts = async || {
        let queue = door.queue("q").await.unwrap().unwrap();
        assert_eq!(queue.partitions, 2);
        queue.counts
    };
    // Which of the two partitions was claimed does not matter here.
    let mut expected = MessageCounts {
        total: 8,
        pending: 7,
        processing: 0,
        completed: 1,
        dead_letter: 0,
    };
    assert_eq!(counts().await, expected);
    make_next_dead(&*store, "q", QUEUE_MODE).await;
    expected.pending = 6;
    expected.dead_letter = 1;
    assert_eq!(counts().await, expected);
    from("q")
        .group(QUEUE_MODE)
        .batch(2)
        .claim_soon(&*store)
        .await;
    let leased = counts().await;
    assert!((1..=2).contains(&leased.processing), "{leased:?}");
    assert_eq!(leased.pending + leased.processing, 6);
    assert_eq!(leased.completed, 1);
    assert!(store.delete_message(address(&pushed[6])).done().await);
    let after = counts().await;
    assert_eq!(after.total, 7);
    assert_eq!(after.pending + after.processing, 5);
    let queue = door.queue("q").await.unwrap().unwrap();
    assert!(queue.oldest_us.is_some());
}

pub(crate) async fn without_queue_mode_the_group_furthest_behind_gives_the_counts(
    store: TestStore,
) {
    let door = store.queue();
    push_each(&*store, "q", "p", &["a", "b", "c"]).await;
    consume(&*store, "q", "fast", 3).await;
    consume(&*store, "q", "slow", 1).await;
    let queue = door.queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (2, 1));
    consume(&*store, "q", QUEUE_MODE, 2).await;
    let queue = door.queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (1, 2));
}

pub(crate) async fn lists_have_pages_and_totals(store: TestStore) {
    let door = store.queue();
    for name in ["n.one", "n.two", "m.one"] {
        push(&*store, name, "p", &["a"]).await;
        push(&*store, name, "q", &["a", "b"]).await;
    }
    let names = async |filter: &QueueFilter, limit, offset| {
        let found = door.queues(filter, page(limit, offset)).await.unwrap();
        assert!(found.rows.iter().all(|queue| queue.counts.total == 3));
        let names: Vec<String> = found.rows.into_iter().map(|queue| queue.name).collect();
        (names, found.total)
    };
    let all = QueueFilter::default();
    let text = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        names(&all, 2, 0).await,
        (text(&["m.one", "n.two"]), 3),
        "the newest first"
    );
    assert_eq!(names(&all, 2, 2).await, (text(&["n.one"]), 3));
    assert_eq!(names(&all, 2, 9).await, (vec![], 3));
    let one = QueueFilter {
        namespace: Some("n".into()),
        task: Some("one".into()),
        ..QueueFilter::default()
    };
    assert_eq!(names(&one, 9, 0).await, (text(&["n.one"]), 1));

    let number = door.queue_number("n.two").await.unwrap();
    let parts = door.partitions(number, page(1, 1)).await.unwrap();
    assert_eq!((parts.rows.len(), parts.total), (1, 2));
    let part = &parts.rows[0];
    assert_eq!((&*part.name, part.counts.pending), ("q", 2));
    let everywhere = door.partitions(None, ALL).await.unwrap();
    assert_eq!((everywhere.rows.len(), everywhere.total), (6, 6));
}

pub(crate) async fn an_overview_sums_all_queues(store: TestStore) {
    let door = store.queue();
    push_each(&*store, "a.x", "p", &["1", "2", "3", "4", "5"]).await;
    push_each(&*store, "b.x", "p", &["1"]).await;
    push_each(&*store, "c", "p", &["1", "2"]).await;
    consume(&*store, "c", "g", 2).await;
    let found = door.overview().await.unwrap();
    assert_eq!((found.queues, found.namespaces, found.tasks), (3, 3, 1));
    assert_eq!(found.partitions, 3);
    let counts = found.counts;
    assert_eq!((counts.total, counts.pending, counts.completed), (8, 6, 2));
    let offset = found.offset;
    let offset = (offset.least, offset.median, offset.mean, offset.most);
    assert_eq!(offset, (0, 1, 2, 5));
    assert_eq!(found.wait_us.least, 0);
    assert!(found.wait_us.most > 0);
}

pub(crate) async fn a_lease_on_several_partitions_is_one_lease(store: TestStore) {
    let routes = Routes::of(store.queue());
    for partition in ["p1", "p2", "p3"] {
        push(&*store, "n.t", partition, &["a"]).await;
    }
    push(&*store, "other", "p", &["a"]).await;
    let all = from("n.t").batch(9).partitions(3);
    for group in ["g", "h"] {
        let claimed = all.clone().group(group).claim_soon(&*store).await;
        assert_eq!(claimed.parts.len(), 3);
    }
    let claimed = from("other").claim_soon(&*store).await;
    for (path, leases, partitions) in [
        ("/api/v1/status", 3, 4),
        ("/api/v1/status?namespace=n", 2, 3),
        ("/api/v1/status?task=none", 0, 0),
    ] {
        let status = routes.get(path).await;
        let shown = &status["leases"];
        assert_eq!(
            (&shown["active"], &shown["partitionsWithLeases"]),
            (&json!(leases), &json!(partitions)),
            "{path}"
        );
    }
    complete(&*store, &claimed, "a").await;
    let status = routes.get("/api/v1/status").await;
    assert_eq!(status["leases"]["active"], 2);
}

/// The numbers that are named as a percentage, or as a ratio that is shown as one.
fn percentages(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(percentages).collect(),
        Value::Object(all) => all
            .iter()
            .flat_map(|(name, value)| match value.as_f64() {
                Some(number) if name.ends_with("Percentage") || name.ends_with("Ratio") => {
                    vec![number]
                }
                _ => percentages(value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

pub(crate) async fn no_percentage_of_the_database_is_above_100(store: TestStore) {
    let routes = Routes::of(store.queue());
    let mut pushed = 0;
    // More dead rows than live ones: each push replaces the partition's row. SQLite has no such
    // statistics.
    let mut stats = Value::Null;
    eventually("dead rows to be counted", async || {
        pushed += 1;
        push(&*store, "q", "p", &[&pushed.to_string()]).await;
        stats = routes.get("/api/v1/analytics/postgres-stats").await;
        let tables = stats["deadTuples"].as_array().expect("tables");
        let more_dead = |table: &Value| table["deadTuples"].as_i64() > table["liveTuples"].as_i64();
        tables.iter().any(more_dead) || !store.database.is_postgres()
    })
    .await;
    let percentages = percentages(&stats);
    assert_eq!(percentages.is_empty(), !store.database.is_postgres());
    let mut percentages = percentages.into_iter();
    assert!(
        percentages.all(|number| (0.0..=100.0).contains(&number)),
        "{stats}"
    );
}

pub(crate) async fn an_empty_store_has_empty_lists(store: TestStore) {
    let door = store.queue();
    let found = door.overview().await.unwrap();
    assert_eq!((found.queues, found.partitions), (0, 0));
    assert_eq!(found.counts, MessageCounts::default());
    assert!(found.now_us > 0);
    let none = door.queues(&QueueFilter::default(), ALL).await;
    assert_eq!(none.unwrap().total, 0);
    assert_eq!(door.queue("q").await.unwrap(), None);
    assert!(store.health().await.unwrap()["database"].is_string());
}
