//! The statistics of nodes, and the number of pops that they hold.

use std::time::Duration;

use wakeline_queue::{
    Queue,
    browse::{Gauge, HeldPopsAverage, NodeStatsBucket, Span},
    counters::{HeldPops, NodeStats},
    node::{Node, Process},
    store::Store,
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    calls::{HOUR, from, message},
    test_store::TestStore,
};

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;

async fn this_minute(door: &Queue) -> i64 {
    door.now_us().await.unwrap() / MINUTE * MINUTE
}

/// Around this minute, in one step.
fn around(minute: i64) -> Span {
    Span {
        from_us: minute - 60 * MINUTE,
        to_us: minute + 10 * MINUTE,
        bucket_us: i64::MAX,
    }
}

fn by_minute(span: Span) -> Span {
    Span {
        bucket_us: MINUTE,
        ..span
    }
}

async fn set_held_pops(store: &dyn Store, host: &str, rows: &[(i64, &str, i64, i64)]) {
    let held_pops = rows
        .iter()
        .map(|&(minute_us, queue, held, samples)| HeldPops {
            minute_us,
            queue: queue.into(),
            held,
            samples,
        });
    let node = (host.to_owned(), 6_632);
    store.set_held_pops(node, held_pops.collect()).done().await;
}

pub(crate) async fn held_pops_are_an_average_of_the_samples(store: TestStore) {
    let door = store.queue();
    let now = this_minute(&door).await;
    let before = now - MINUTE;
    // The counts of half a minute are replaced by those of the whole minute.
    set_held_pops(&*store, "a", &[(before, "q", 99, 1)]).await;
    set_held_pops(&*store, "a", &[(before, "q", 12, 6), (now, "q", 3, 6)]).await;
    set_held_pops(&*store, "b", &[(now, "q", 10, 5), (now, "r", 1, 1)]).await;
    let held = |bucket_us, queue: &str, host: Option<&str>, held| HeldPopsAverage {
        bucket_us,
        queue: queue.into(),
        node: host.map(|host| (host.to_owned(), 6_632)),
        held,
    };
    let minutes = by_minute(around(now));
    assert_eq!(
        door.held_by_node(minutes, &None).await.unwrap(),
        [
            held(before, "q", Some("a"), 2.0),
            held(now, "q", Some("a"), 0.5),
            held(now, "q", Some("b"), 2.0),
            held(now, "r", Some("b"), 1.0),
        ]
    );
    let of_q = door.held_by_queue(minutes, &Some("q".into())).await;
    assert_eq!(
        of_q.unwrap(),
        [held(before, "q", None, 2.0), held(now, "q", None, 2.5)]
    );
    let in_one_step = door.held_by_queue(around(now), &None).await;
    assert_eq!(
        in_one_step.unwrap(),
        [held(0, "q", None, 2.25), held(0, "r", None, 1.0)]
    );
}

pub(crate) async fn the_door_writes_how_many_pops_it_holds(store: TestStore) {
    let door = store.queue();
    door.set_node(Node {
        hostname: "here".into(),
        port: 7,
        ..Node::default()
    });
    let held_pops = [from("q"), from("q").partition("p")].map(|request| {
        let door = door.clone();
        tokio::spawn(async move { door.pop(request.0, HOUR).await.map(drop) })
    });
    eventually("both pops to be held", async || door.engine().held() == 2).await;
    door.write_counts().await;
    for held in held_pops {
        held.abort();
    }
    let now = this_minute(&door).await;
    let held = door.held_by_node(around(now), &None).await.unwrap();
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((&*held[0].queue, held[0].held), ("q", 2.0));
    assert_eq!(held[0].node, Some(("here".into(), 7)));
}

fn node_stats(minute_us: i64, host: &str, number: i64) -> NodeStats {
    NodeStats {
        minute_us,
        hostname: host.into(),
        port: 6_632,
        cpu_user: Some(number),
        cpu_system: Some(number + 1),
        resident_bytes: Some(number + 2),
        virtual_bytes: None,
        connections: number + 4,
        busy_connections: number + 5,
        held: number + 6,
        late_us: number + 7,
        max_late_us: number + 8,
        messages: number + 9,
    }
}

async fn nodes(door: &Queue, span: Span) -> Vec<NodeStatsBucket> {
    door.node_steps(span, &None).await.unwrap()
}

pub(crate) async fn a_node_is_shown_by_step(store: TestStore) {
    let door = store.queue();
    let now = this_minute(&door).await;
    for stats in [
        node_stats(now - MINUTE, "a", 30),
        node_stats(now, "a", 10),
        node_stats(now, "b", 100),
    ] {
        store.set_node_stats(stats).done().await;
    }
    let found = nodes(&door, around(now)).await;
    let gauge = |number: i64| {
        Some(Gauge {
            average: f64::from(i32::try_from(number).unwrap()) + 20.0,
            least: number + 10,
            most: number + 30,
            last: number + 10,
        })
    };
    assert_eq!(
        found[0],
        NodeStatsBucket {
            bucket_us: 0,
            hostname: "a".into(),
            port: 6_632,
            minutes: 2,
            last_us: now,
            messages: 30 + 10 + 18,
            cpu_user: gauge(0),
            cpu_system: gauge(1),
            resident_bytes: gauge(2),
            virtual_bytes: None,
            connections: gauge(4),
            busy_connections: gauge(5),
            held: gauge(6),
            late_us: gauge(7),
            max_late_us: gauge(8),
        }
    );
    assert_eq!((found.len(), &*found[1].hostname), (2, "b"));
    let steps = nodes(&door, by_minute(around(now))).await;
    let steps = steps.iter().map(|step| (&*step.hostname, step.bucket_us));
    assert!(steps.eq([("a", now - MINUTE), ("a", now), ("b", now)]));
    let one = door.node_steps(around(now), &Some("b".into())).await;
    assert_eq!(one.unwrap().len(), 1);
}

pub(crate) async fn newer_node_stats_replace_older_ones_of_the_minute(store: TestStore) {
    let door = store.queue();
    let now = this_minute(&door).await;
    for number in [50, 10] {
        store
            .set_node_stats(node_stats(now, "a", number))
            .done()
            .await;
    }
    let found = nodes(&door, around(now)).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].cpu_user.unwrap().most, 10);
    assert_eq!(found[0].max_late_us.unwrap().most, 58, "at most");
    assert_eq!(found[0].messages, 59 + 19, "they add up");
}

pub(crate) async fn old_samples_are_deleted(store: TestStore) {
    let door = store.queue();
    let now = this_minute(&door).await;
    let span = Span {
        from_us: 0,
        ..around(now)
    };
    for minute in [now - 8 * DAY, now - 6 * DAY, now] {
        store
            .set_node_stats(node_stats(minute, "a", 1))
            .done()
            .await;
        set_held_pops(&*store, "a", &[(minute, "q", 1, 1)]).await;
    }
    assert_eq!(nodes(&door, span).await[0].minutes, 2);
    let held = door.held_by_queue(by_minute(span), &None).await;
    assert_eq!(held.unwrap().len(), 2);
}

pub(crate) async fn the_door_writes_the_stats_of_its_node(store: TestStore) {
    let door = store.queue();
    door.set_node(Node {
        hostname: "here".into(),
        port: 7,
        process: || {
            Some(Process {
                user: Duration::ZERO,
                system: Duration::ZERO,
                resident_bytes: 1_000,
                virtual_bytes: 2_000,
            })
        },
    });
    let messages = ["a", "b", "c"].map(|name| message("q", "p", name));
    door.push(messages.to_vec()).await.unwrap();
    door.write_counts().await;
    let now = this_minute(&door).await;
    let found = nodes(&door, around(now)).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let node = &found[0];
    assert_eq!((&*node.hostname, node.port, node.messages), ("here", 7, 3));
    assert_eq!(node.resident_bytes.unwrap().last, 1_000);
    assert_eq!(node.virtual_bytes.unwrap().last, 2_000);
    assert_eq!(node.cpu_user.unwrap().last, 0);
    assert!(node.connections.unwrap().last > 0);
}
