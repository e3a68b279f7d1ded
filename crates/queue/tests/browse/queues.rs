use wakeline_queue::browse::{Counts, QueueFilter};
use wakeline_testkit::CommitAlone;

use crate::ground::{ALL, Ground, QUEUE_MODE, address, page};

pub(crate) async fn a_queue_counts_each_message_once(ground: Ground) {
    let pushed = ground
        .push("q", "p", &["a", "b", "c", "d", "e", "f", "g"])
        .await;
    ground.push("q", "other", &["x"]).await;
    ground.push("elsewhere", "p", &["x", "y"]).await;
    assert_eq!(ground.complete("q", QUEUE_MODE, 1).await.len(), 1);
    let counts = async || {
        let queue = ground.browse().queue("q").await.unwrap().unwrap();
        assert_eq!(queue.partitions, 2);
        queue.counts
    };
    // Which of the two partitions was claimed does not matter here.
    assert_eq!(
        counts().await,
        Counts {
            total: 8,
            pending: 7,
            processing: 0,
            completed: 1,
            dead_letter: 0,
        }
    );
    ground.bury_next("q", QUEUE_MODE).await;
    assert_eq!(
        counts().await,
        Counts {
            total: 8,
            pending: 6,
            processing: 0,
            completed: 1,
            dead_letter: 1,
        }
    );
    ground.pop("q", QUEUE_MODE, 2).await.unwrap();
    let leased = counts().await;
    assert!((1..=2).contains(&leased.processing), "{leased:?}");
    assert_eq!(leased.pending + leased.processing, 6);
    assert_eq!(leased.completed, 1);
    let deleted = ground
        .store
        .delete_message(address(&pushed[6]))
        .commit_alone()
        .await;
    assert!(deleted.unwrap());
    let after = counts().await;
    assert_eq!(after.total, 7);
    assert_eq!(after.pending + after.processing, 5);
    let queue = ground.browse().queue("q").await.unwrap().unwrap();
    assert_eq!(queue.leased_partitions, 1);
    assert!(queue.oldest_us.is_some());
}

pub(crate) async fn without_queue_mode_the_furthest_behind_counts(ground: Ground) {
    ground.push("q", "p", &["a", "b", "c"]).await;
    ground.complete("q", "fast", 3).await;
    ground.complete("q", "slow", 1).await;
    let queue = ground.browse().queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (2, 1));
    ground.complete("q", QUEUE_MODE, 2).await;
    let queue = ground.browse().queue("q").await.unwrap().unwrap();
    assert_eq!((queue.counts.pending, queue.counts.completed), (1, 2));
}

pub(crate) async fn lists_have_pages_and_totals(ground: Ground) {
    for name in ["n.one", "n.two", "m.one"] {
        ground.push(name, "p", &["a"]).await;
        ground.push(name, "q", &["a", "b"]).await;
    }
    let names = async |filter: &QueueFilter, limit, offset| {
        let found = ground.browse().queues(filter, page(limit, offset)).await;
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

    let number = ground.browse().queue_number("n.two").await.unwrap();
    let parts = ground.browse().partitions(number, page(1, 1)).await;
    let parts = parts.unwrap();
    assert_eq!((parts.rows.len(), parts.total), (1, 2));
    assert_eq!(
        (&*parts.rows[0].name, parts.rows[0].counts.pending),
        ("q", 2)
    );
    let everywhere = ground.browse().partitions(None, ALL).await.unwrap();
    assert_eq!((everywhere.rows.len(), everywhere.total), (6, 6));
}

pub(crate) async fn an_overview_adds_up(ground: Ground) {
    ground.push("a.x", "p", &["1", "2", "3", "4", "5"]).await;
    ground.push("b.x", "p", &["1"]).await;
    ground.push("c", "p", &["1", "2"]).await;
    ground.complete("c", "g", 2).await;
    let seen = ground.browse().overview().await.unwrap();
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

pub(crate) async fn an_empty_store_is_shown_as_such(ground: Ground) {
    let seen = ground.browse().overview().await.unwrap();
    assert_eq!((seen.queues, seen.partitions), (0, 0));
    assert_eq!(seen.counts, Counts::default());
    assert!(seen.now_us > 0);
    let none = ground.browse().queues(&QueueFilter::default(), ALL).await;
    assert_eq!(none.unwrap().total, 0);
    assert_eq!(ground.browse().queue("q").await.unwrap(), None);
    assert!(ground.store.health().await.unwrap()["database"].is_string());
}
