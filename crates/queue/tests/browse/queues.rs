use wakeline_queue::browse::{MessageCounts, QueueFilter};
use wakeline_testkit::CommitAlone;

use crate::fixture::{ALL, Fixture, QUEUE_MODE, address, page};

pub(crate) async fn a_queue_counts_each_message_once(fixture: Fixture) {
    let pushed = fixture
        .push("q", "p", &["a", "b", "c", "d", "e", "f", "g"])
        .await;
    fixture.push("q", "other", &["x"]).await;
    fixture.push("elsewhere", "p", &["x", "y"]).await;
    assert_eq!(fixture.complete("q", QUEUE_MODE, 1).await.len(), 1);
    let counts = async || {
        let queue = fixture.queue.queue("q").await.unwrap().unwrap();
        assert_eq!(queue.partitions, 2);
        queue.counts
    };
    // Which of the two partitions was claimed does not matter here.
    assert_eq!(
        counts().await,
        MessageCounts {
            total: 8,
            pending: 7,
            processing: 0,
            completed: 1,
            dead_letter: 0,
        }
    );
    fixture.make_next_dead_letter("q", QUEUE_MODE).await;
    assert_eq!(
        counts().await,
        MessageCounts {
            total: 8,
            pending: 6,
            processing: 0,
            completed: 1,
            dead_letter: 1,
        }
    );
    fixture.pop("q", QUEUE_MODE, 2).await.unwrap();
    let leased = counts().await;
    assert!((1..=2).contains(&leased.processing), "{leased:?}");
    assert_eq!(leased.pending + leased.processing, 6);
    assert_eq!(leased.completed, 1);
    let deleted = fixture
        .store
        .delete_message(address(&pushed[6]))
        .commit_alone()
        .await;
    assert!(deleted.unwrap());
    let after = counts().await;
    assert_eq!(after.total, 7);
    assert_eq!(after.pending + after.processing, 5);
    let queue = fixture.queue.queue("q").await.unwrap().unwrap();
    assert_eq!(queue.leased_partitions, 1);
    assert!(queue.oldest_us.is_some());
}

pub(crate) async fn without_queue_mode_the_furthest_behind_counts(fixture: Fixture) {
    fixture.push("q", "p", &["a", "b", "c"]).await;
    fixture.complete("q", "fast", 3).await;
    fixture.complete("q", "slow", 1).await;
    let queue = fixture.queue.queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (2, 1));
    fixture.complete("q", QUEUE_MODE, 2).await;
    let queue = fixture.queue.queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (1, 2));
}

pub(crate) async fn lists_have_pages_and_totals(fixture: Fixture) {
    for name in ["n.one", "n.two", "m.one"] {
        fixture.push(name, "p", &["a"]).await;
        fixture.push(name, "q", &["a", "b"]).await;
    }
    let names = async |filter: &QueueFilter, limit, offset| {
        let found = fixture.queue.queues(filter, page(limit, offset)).await;
        let found = found.unwrap();
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

    let number = fixture.queue.queue_number("n.two").await.unwrap();
    let parts = fixture.queue.partitions(number, page(1, 1)).await;
    let parts = parts.unwrap();
    assert_eq!((parts.rows.len(), parts.total), (1, 2));
    assert_eq!(
        (&*parts.rows[0].name, parts.rows[0].counts.pending),
        ("q", 2)
    );
    let everywhere = fixture.queue.partitions(None, ALL).await.unwrap();
    assert_eq!((everywhere.rows.len(), everywhere.total), (6, 6));
}

pub(crate) async fn an_overview_adds_up(fixture: Fixture) {
    fixture.push("a.x", "p", &["1", "2", "3", "4", "5"]).await;
    fixture.push("b.x", "p", &["1"]).await;
    fixture.push("c", "p", &["1", "2"]).await;
    fixture.complete("c", "g", 2).await;
    let seen = fixture.queue.overview().await.unwrap();
    assert_eq!((seen.queues, seen.namespaces, seen.tasks), (3, 3, 1));
    assert_eq!(seen.partitions, 3);
    assert_eq!(
        (
            seen.counts.total,
            seen.counts.pending,
            seen.counts.completed
        ),
        (8, 6, 2)
    );
    let offset = seen.offset;
    assert_eq!(
        (offset.least, offset.median, offset.mean, offset.most),
        (0, 1, 2, 5)
    );
    assert_eq!(seen.wait_us.least, 0);
    assert!(seen.wait_us.most > 0);
}

pub(crate) async fn an_empty_store_is_shown_as_such(fixture: Fixture) {
    let seen = fixture.queue.overview().await.unwrap();
    assert_eq!((seen.queues, seen.partitions), (0, 0));
    assert_eq!(seen.counts, MessageCounts::default());
    assert!(seen.now_us > 0);
    let none = fixture.queue.queues(&QueueFilter::default(), ALL).await;
    assert_eq!(none.unwrap().total, 0);
    assert_eq!(fixture.queue.queue("q").await.unwrap(), None);
    assert!(fixture.store.health().await.unwrap()["database"].is_string());
}
