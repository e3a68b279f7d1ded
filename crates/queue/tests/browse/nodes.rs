//! How the nodes are doing, and how many pops they hold.

use std::time::Duration;

use wakeline_queue::{
    browse::{Gauge, HeldPopsAverage, NodeStatsBucket, Span},
    claim::{PopRequest, Source, Start},
    counters::{HeldPops, NodeStats},
    message::NewMessage,
    node::{Node, Process},
};
use wakeline_testkit::CommitAlone;

use crate::fixture::Fixture;

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// Only a hang takes as long.
const PATIENCE: Duration = Duration::from_secs(30);

async fn this_minute(fixture: &Fixture) -> i64 {
    fixture.queue.now_us().await.unwrap() / MINUTE * MINUTE
}

/// Around this minute, in one step.
fn around(minute: i64) -> Span {
    Span {
        from_us: minute - 60 * MINUTE,
        to_us: minute + 10 * MINUTE,
        bucket_us: i64::MAX,
    }
}

async fn tell_parked(fixture: &Fixture, host: &str, told: &[(i64, &str, i64, i64)]) {
    let parked = told
        .iter()
        .map(|(minute_us, queue, held, samples)| HeldPops {
            minute_us: *minute_us,
            queue: (*queue).into(),
            held: *held,
            samples: *samples,
        });
    let node = (host.to_owned(), 6_632);
    let told = fixture
        .store
        .set_held_pops(node, parked.collect())
        .commit_alone()
        .await;
    told.unwrap();
}

pub(crate) async fn held_pops_are_an_average_of_the_samples(fixture: Fixture) {
    let now = this_minute(&fixture).await;
    let before = now - MINUTE;
    // One has told half of a minute before.
    tell_parked(&fixture, "a", &[(before, "q", 99, 1)]).await;
    tell_parked(&fixture, "a", &[(before, "q", 12, 6), (now, "q", 3, 6)]).await;
    tell_parked(&fixture, "b", &[(now, "q", 10, 5), (now, "r", 1, 1)]).await;
    let held = |bucket_us, queue: &str, host: Option<&str>, held| HeldPopsAverage {
        bucket_us,
        queue: queue.into(),
        node: host.map(|host| (host.to_owned(), 6_632)),
        held,
    };
    let minutes = Span {
        bucket_us: MINUTE,
        ..around(now)
    };
    assert_eq!(
        fixture.queue.held_by_node(minutes, &None).await.unwrap(),
        [
            held(before, "q", Some("a"), 2.0),
            held(now, "q", Some("a"), 0.5),
            held(now, "q", Some("b"), 2.0),
            held(now, "r", Some("b"), 1.0),
        ]
    );
    assert_eq!(
        fixture
            .queue
            .held_by_queue(minutes, &Some("q".into()))
            .await
            .unwrap(),
        [held(before, "q", None, 2.0), held(now, "q", None, 2.5)]
    );
    assert_eq!(
        fixture
            .queue
            .held_by_queue(around(now), &None)
            .await
            .unwrap(),
        [held(0, "q", None, 2.25), held(0, "r", None, 1.0)]
    );
}

pub(crate) async fn the_door_tells_how_many_pops_it_holds(fixture: Fixture) {
    let door = fixture.door();
    door.set_node(Node {
        hostname: "here".into(),
        port: 7,
        ..Node::default()
    });
    let pop = |partition: Option<&str>| PopRequest {
        source: Source::Queue {
            queue: "q".into(),
            partition: partition.map(Into::into),
        },
        group: "g".into(),
        start: Start::All,
        batch: 1,
        partitions: 1,
        auto_ack: true,
    };
    let holding: Vec<_> = [None, Some("p")]
        .into_iter()
        .map(|partition| {
            let (door, request) = (door.clone(), pop(partition));
            tokio::spawn(async move { door.pop(request, PATIENCE * 4).await.map(drop) })
        })
        .collect();
    let all_held = async {
        while door.engine().held() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_held).await.unwrap();
    door.write_counts().await;
    for held in &holding {
        held.abort();
    }
    let now = this_minute(&fixture).await;
    let held = fixture.queue.held_by_node(around(now), &None).await;
    let held = held.unwrap();
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

async fn nodes(fixture: &Fixture, span: Span) -> Vec<NodeStatsBucket> {
    fixture.queue.node_steps(span, &None).await.unwrap()
}

pub(crate) async fn a_node_is_shown_by_step(fixture: Fixture) {
    let now = this_minute(&fixture).await;
    for node_stats in [
        node_stats(now - MINUTE, "a", 30),
        node_stats(now, "a", 10),
        node_stats(now, "b", 100),
    ] {
        fixture.store.set_node_stats(node_stats).done().await;
    }
    let found = nodes(&fixture, around(now)).await;
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
    let minutes = Span {
        bucket_us: MINUTE,
        ..around(now)
    };
    let keys: Vec<_> = nodes(&fixture, minutes)
        .await
        .into_iter()
        .map(|step| (step.hostname, step.bucket_us))
        .collect();
    assert_eq!(
        keys,
        [
            ("a".to_owned(), now - MINUTE),
            ("a".to_owned(), now),
            ("b".to_owned(), now)
        ]
    );
    let one = fixture
        .queue
        .node_steps(around(now), &Some("b".into()))
        .await;
    assert_eq!(one.unwrap().len(), 1);
}

pub(crate) async fn what_a_node_told_before_is_replaced(fixture: Fixture) {
    let now = this_minute(&fixture).await;
    for number in [50, 10] {
        let told = fixture
            .store
            .set_node_stats(node_stats(now, "a", number))
            .commit_alone()
            .await;
        told.unwrap();
    }
    let found = nodes(&fixture, around(now)).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].cpu_user.unwrap().most, 10);
    assert_eq!(found[0].max_late_us.unwrap().most, 58, "at most");
    assert_eq!(found[0].messages, 59 + 19, "they add up");
}

pub(crate) async fn old_samples_are_forgotten(fixture: Fixture) {
    let now = this_minute(&fixture).await;
    let span = Span {
        from_us: 0,
        ..around(now)
    };
    for minute in [now - 8 * DAY, now - 6 * DAY, now] {
        let told = fixture
            .store
            .set_node_stats(node_stats(minute, "a", 1))
            .commit_alone()
            .await;
        told.unwrap();
        tell_parked(&fixture, "a", &[(minute, "q", 1, 1)]).await;
    }
    assert_eq!(nodes(&fixture, span).await[0].minutes, 2);
    let minutes = Span {
        bucket_us: MINUTE,
        ..span
    };
    let held = fixture.queue.held_by_queue(minutes, &None).await;
    assert_eq!(held.unwrap().len(), 2);
}

pub(crate) async fn the_door_tells_how_it_is_doing(fixture: Fixture) {
    let door = fixture.door();
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
    let message = NewMessage {
        queue: "q".into(),
        partition: "p".into(),
        payload: "1".into(),
        ..NewMessage::default()
    };
    door.push(vec![message; 3]).await.unwrap();
    door.write_counts().await;
    let now = this_minute(&fixture).await;
    let found = nodes(&fixture, around(now)).await;
    assert_eq!(found.len(), 1, "{found:?}");
    let node = &found[0];
    assert_eq!((&*node.hostname, node.port, node.messages), ("here", 7, 3));
    assert_eq!(node.resident_bytes.unwrap().last, 1_000);
    assert_eq!(node.virtual_bytes.unwrap().last, 2_000);
    assert_eq!(node.cpu_user.unwrap().last, 0);
    assert!(node.connections.unwrap().last > 0);
}
