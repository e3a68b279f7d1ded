//! Analytics: swept messages, held pops, the nodes' resources, and failures of the database.

use std::sync::mpsc;

use serde_json::{Value, json};
use wakeline_store::{Error, Sqlite};
use wakeline_testbed::Postgres;

use super::{
    assert_has, complete, delete, move_to_dead_letters, numbers::refresh, pop, push, read,
};
use crate::{
    fixture::{Fixture, on_both_stores},
    server::{Server, until},
};

on_both_stores! {
    swept_messages_are_counted_by_retention_rule,
    held_pops_are_counted,
    calls_are_counted,
    a_node_reports_its_memory_cpu_and_connections,
    numbers_that_do_not_exist_here_are_null,
}

async fn configure(server: &Server, queue: &str, options: Value) {
    let body = json!({"queue": queue, "options": options});
    let answer = server.post("/api/v1/configure", &body).await;
    assert!(answer.status < 300, "{}", answer.text());
}

/// Until the retention statistics count `count` swept messages.
async fn swept(server: &Server, path: &str, total: i64) -> Value {
    until(&format!("{total} swept messages"), async || {
        refresh(server).await;
        let retention = read(server, path).await;
        let told = retention["totals"]["totalMsgs"].as_i64().expect("a number");
        assert!(told <= total, "{retention}");
        (told == total).then_some(retention)
    })
    .await
}

async fn swept_messages_are_counted_by_retention_rule(fixture: Fixture) {
    let flags = ["--queue-sweep-interval", "100ms"];
    let server = fixture.serve().flags(&flags).start().await;
    let none = read(&server, "/api/v1/analytics/retention").await;
    assert_eq!(none["series"], json!([]));
    assert_eq!(
        none["totals"],
        json!({
            "totalMsgs": 0, "eventCount": 0, "evictionMsgs": 0, "retentionMsgs": 0,
            "completedRetentionMsgs": 0,
        })
    );
    configure(&server, "late", json!({"maxWaitTimeSeconds": 1})).await;
    push(&server, "late", "p", &["a", "b"]).await;
    let late = swept(&server, "/api/v1/analytics/retention?queue=late", 2).await;
    assert_eq!(late["totals"]["evictionMsgs"], 2);
    configure(&server, "late", json!({"maxWaitTimeSeconds": null})).await;
    push(&server, "late", "p", &["c"]).await;

    let options = json!({"retentionEnabled": true, "retentionSeconds": 1});
    configure(&server, "old", options).await;
    push(&server, "old", "p", &["a"]).await;
    let old = swept(&server, "/api/v1/analytics/retention?queue=old", 1).await;
    assert_eq!(old["totals"]["retentionMsgs"], 1);
    assert!(old["totals"]["eventCount"].as_i64() >= Some(1), "{old}");

    let options = json!({"retentionEnabled": true, "completedRetentionSeconds": 1});
    configure(&server, "done", options).await;
    push(&server, "done", "p", &["a", "b", "c"]).await;
    complete(&server, "done", "g", 2).await;
    let all = swept(&server, "/api/v1/analytics/retention", 5).await;
    let totals = &all["totals"];
    assert_eq!(totals["completedRetentionMsgs"], 2);
    assert_eq!(
        (&totals["evictionMsgs"], &totals["retentionMsgs"]),
        (&json!(2), &json!(1))
    );
    let series = all["series"].as_array().expect("a series");
    let of_series: i64 = series
        .iter()
        .map(|point| point["totalMsgs"].as_i64().expect("a number"))
        .sum();
    assert_eq!(of_series, 5);
    assert_has(&series[0], &["bucket", "eventCount"]);
    for (queue, left) in [("late", 1), ("old", 0), ("done", 1)] {
        let shown = read(&server, &format!("/api/v1/resources/queues/{queue}")).await;
        assert_eq!(shown["totals"]["total"], left, "{queue}");
    }
}

/// What the node at this port is told to have held of a queue, in the newest step.
fn held_at(parked: &Value, server: &Server, queue: &str) -> Option<f64> {
    let series = parked["series"].as_array().expect("a series");
    let of_node = |point: &&Value| {
        point["workerId"] == server.address().port() && point["queueName"] == queue
    };
    series.iter().rfind(of_node)?["parkedCount"].as_f64()
}

/// Until [`held_at`] has this value. The first minute's average has samples from before the pops
/// were held.
async fn until_held(node: &Server, at: &Server, queue: &str, count: u32) {
    until(&format!("{count} held of {queue}"), async || {
        refresh(at).await;
        let parked = read(node, "/api/v1/analytics/queue-parked-replicas").await;
        let held = held_at(&parked, at, queue).unwrap_or_default();
        assert!(held <= f64::from(count), "{parked}");
        (held > f64::from(count) - 0.5).then_some(())
    })
    .await;
}

async fn held_pops_are_counted(fixture: Fixture) {
    let server = fixture.serve().start().await;
    refresh(&server).await;
    let none = read(&server, "/api/v1/analytics/queue-parked-replicas").await;
    assert_eq!(
        (&none["series"], &none["replicas"]),
        (&json!([]), &json!([]))
    );
    let wait = "wait=true&timeout=85000";
    let holding = [
        server.hold(&format!("/api/v1/pop/queue/q?{wait}")),
        server.hold(&format!(
            "/api/v1/pop/queue/q/partition/p?{wait}&consumerGroup=g"
        )),
        server.hold(&format!("/api/v1/pop/queue/r?{wait}")),
    ];
    server.until_waiting(3).await;
    until_held(&server, &server, "q", 2).await;
    until_held(&server, &server, "r", 1).await;
    let parked = read(&server, "/api/v1/analytics/queue-parked-replicas").await;
    let port = server.address().port();
    assert_eq!(parked["replicas"][0]["workerId"], port);
    let host = parked["replicas"][0]["hostname"].as_str().expect("a name");
    assert!(!host.is_empty());
    assert_has(&parked["series"][0], &["bucket", "hostname"]);
    let one = read(&server, "/api/v1/analytics/queue-parked-replicas?queue=r").await;
    assert_eq!(held_at(&one, &server, "q"), None);
    let ops = read(&server, "/api/v1/analytics/queue-ops?queue=q").await;
    let ops = ops["series"].as_array().expect("a series");
    let held = ops.last().expect("a step")["parkedCount"].as_f64();
    assert!(held > Some(1.0) && held <= Some(2.0), "{ops:?}");
    for held in holding {
        held.abort();
    }
}

#[tokio::test]
async fn held_pops_are_counted_by_node() {
    let fixture = Fixture::postgres().await;
    let (one, other) = tokio::join!(fixture.serve().start(), fixture.serve().start());
    let path = "/api/v1/pop/queue/q?wait=true&timeout=85000";
    let holding = [one.hold(path), one.hold(path), other.hold(path)];
    one.until_waiting(2).await;
    other.until_waiting(1).await;
    // Whichever node is asked.
    until_held(&other, &one, "q", 2).await;
    until_held(&one, &other, "q", 1).await;
    let parked = read(&one, "/api/v1/analytics/queue-parked-replicas").await;
    assert_eq!(parked["replicas"].as_array().expect("nodes").len(), 2);
    let system = read(&one, "/api/v1/analytics/system-metrics").await;
    assert_eq!(system["replicaCount"], 2, "{system}");
    for held in holding {
        held.abort();
    }
}

fn sum(rows: &Value, field: &str) -> i64 {
    let rows = rows.as_array().expect("rows");
    let number = |row: &Value| {
        row[field]
            .as_i64()
            .unwrap_or_else(|| panic!("{field}: {row}"))
    };
    rows.iter().map(number).sum()
}

async fn calls_are_counted(fixture: Fixture) {
    let server = fixture.serve().start().await;
    push(&server, "q", "p", &["a", "b", "c", "d"]).await;
    complete(&server, "q", "g", 2).await;
    move_to_dead_letters(&server, "q", "g").await;
    assert_eq!(pop(&server, "nothing", "g", 1).await.1.len(), 0);
    let both = json!({"items": [
        {"queue": "q", "partition": "p2", "payload": 1}, {"queue": "r", "payload": 1},
    ]});
    assert_eq!(server.post("/api/v1/push", &both).await.status, 201);
    let push_one = json!({"queue": "r", "payload": 2});
    let operations = json!({"operations": [{"type": "push", "items": [push_one]}]});
    let answer = server.post("/api/v1/transaction", &operations).await;
    assert_eq!(answer.json()["success"], true, "{}", answer.text());
    refresh(&server).await;

    let ops = read(&server, "/api/v1/analytics/queue-ops?queue=q").await;
    let ops = &ops["series"];
    for (field, count) in [
        ("pushRequests", 5),
        ("pushMessages", 5),
        ("popMessages", 3),
        ("popEmpty", 0),
        ("ackRequests", 2),
        ("transactions", 0),
        ("partitionsCreated", 2),
        ("partitionsDeleted", 0),
    ] {
        assert_eq!(sum(ops, field), count, "{field}: {ops}");
    }
    let last = ops.as_array().and_then(|steps| steps.last());
    assert_eq!(last.expect("a step")["partitionCount"], 2);
    let nothing = read(&server, "/api/v1/analytics/queue-ops?queue=nothing").await;
    assert_eq!(sum(&nothing["series"], "popEmpty"), 1);
    let other = read(&server, "/api/v1/analytics/queue-ops?queue=r").await;
    assert_eq!(sum(&other["series"], "pushRequests"), 1);
    assert_eq!(sum(&other["series"], "transactions"), 1);
    // A call about two queues counts as one.
    let workers = read(&server, "/api/v1/analytics/worker-metrics").await;
    for (field, count) in [
        ("totalPushRequests", 5),
        ("totalPushMessages", 7),
        ("totalPopRequests", 3),
        ("totalAckRequests", 2),
        ("totalDbErrors", 0),
        ("pendingMessages", 4),
    ] {
        assert_eq!(workers["summary"][field], count, "{field}: {workers}");
    }
    for field in ["pushRequests", "popRequests", "ackRequests"] {
        let total = format!("total{}{}", field[..1].to_uppercase(), &field[1..]);
        assert_eq!(
            sum(&workers["timeSeries"], field),
            workers["summary"][total].as_i64().expect("a number")
        );
    }
    let status = read(&server, "/api/v1/status").await;
    let requests = json!({"push": 5, "pop": 3, "ack": 2});
    assert_eq!(status["messages"]["requests"], requests);
    assert_eq!(status["messages"]["batchEfficiency"]["push"], 1.4);
    assert_eq!(status["errors"]["dbErrors"], 0);

    delete(&server, "/api/v1/resources/queues/q").await;
    refresh(&server).await;
    let ops = read(&server, "/api/v1/analytics/queue-ops?queue=q").await;
    assert_eq!(sum(&ops["series"], "partitionsDeleted"), 2);
}

async fn a_node_reports_its_memory_cpu_and_connections(fixture: Fixture) {
    let server = fixture.serve().start().await;
    push(&server, "q", "p", &["a", "b"]).await;
    refresh(&server).await;
    let port = server.address().port();
    let system = read(&server, "/api/v1/analytics/system-metrics").await;
    assert_eq!(system["replicaCount"], 1, "{system}");
    let node = &system["replicas"][0];
    assert_eq!(node["port"], port);
    assert_eq!(node["workerId"], format!("worker-{port}"));
    assert_has(node, &["hostname"]);
    let metrics = &node["timeSeries"][0]["metrics"];
    let last = |family: &str, name: &str| metrics[family][name]["last"].as_i64();
    assert!(last("database", "pool_size") > Some(0), "{metrics}");
    assert!(last("database", "pool_idle") >= Some(0), "{metrics}");
    assert_eq!(last("registries", "response"), Some(0));
    if cfg!(target_os = "linux") {
        assert!(last("memory", "rss_bytes") > Some(1_000_000), "{metrics}");
        assert!(last("memory", "virtual_bytes") >= last("memory", "rss_bytes"));
        assert!(last("cpu", "user_us") >= Some(0), "{metrics}");
        assert!(last("cpu", "system_us") >= Some(0), "{metrics}");
    }
    let other = "/api/v1/analytics/system-metrics?hostname=nowhere";
    assert_eq!(read(&server, other).await["replicaCount"], 0);

    let workers = read(&server, "/api/v1/analytics/worker-metrics").await;
    let worker = &workers["workers"][0];
    assert_eq!(worker["workerId"], port);
    assert_eq!(worker["messagesProcessed"], 2);
    assert!(worker["dbConnections"].as_i64() > Some(0), "{worker}");
    assert_has(worker, &["hostname", "freeSlots", "lastSeen"]);
    let status = read(&server, "/api/v1/status").await;
    assert_eq!(status["workers"][0]["workerId"], port);
}

/// The node that acknowledges has seen neither the push nor the pop.
#[tokio::test]
async fn acks_on_another_node_are_counted() {
    let fixture = Fixture::postgres().await;
    let (one, other) = tokio::join!(fixture.serve().start(), fixture.serve().start());
    push(&one, "q", "p", &["a", "b"]).await;
    let (_, messages) = pop(&one, "q", "g", 2).await;
    super::ack(&other, &messages[0], "g", "completed").await;
    super::ack(&other, &messages[1], "g", "dlq").await;
    for node in [&one, &other] {
        refresh(node).await;
    }
    let ops = read(&one, "/api/v1/analytics/queue-ops?queue=q").await;
    for (field, count) in [
        ("pushMessages", 2),
        ("popMessages", 2),
        ("ackRequests", 2),
        ("ackSuccess", 1),
        ("ackFailed", 1),
        ("dlqCount", 1),
    ] {
        assert_eq!(sum(&ops["series"], field), count, "{field}: {ops}");
    }
}

/// The members that are null anywhere, by their names.
fn nulls(value: &Value, name: &str, found: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Null => {
            found.insert(name.to_owned());
        }
        Value::Array(all) => all.iter().for_each(|one| nulls(one, name, found)),
        Value::Object(all) => all.iter().for_each(|(name, one)| nulls(one, name, found)),
        _ => {}
    }
}

/// The docs name each of these, with the reason.
async fn numbers_that_do_not_exist_here_are_null(fixture: Fixture) {
    let server = fixture.serve().start().await;
    push(&server, "q", "p", &["a"]).await;
    complete(&server, "q", "g", 1).await;
    refresh(&server).await;
    let mut found = std::collections::BTreeSet::new();
    for path in [
        "analytics/system-metrics",
        "analytics/worker-metrics",
        "analytics/queue-lag",
        "analytics/queue-ops",
        "analytics/queue-parked-replicas",
        "analytics/retention",
        "status",
    ] {
        nulls(
            &read(&server, &format!("/api/v1/{path}")).await,
            path,
            &mut found,
        );
    }
    // Null in a minute in which one of the two counters was not written yet.
    for by_chance in ["avgLagMs", "maxLagMs"] {
        found.remove(by_chance);
    }
    for of_nodes in [
        "avgEventLoopLagMs",
        "maxEventLoopLagMs",
        "avgFreeSlots",
        "minFreeSlots",
        "dbConnections",
    ] {
        found.remove(of_nodes);
    }
    let known = [
        "avgJobQueueSize",
        "backoffSize",
        "failed",
        "jobQueueSize",
        "maxJobQueueSize",
        "shared_state",
        "threadpool",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), known);
}

async fn errors(server: &Server) -> (i64, i64) {
    refresh(server).await;
    let status = read(server, "/api/v1/status").await;
    let workers = read(server, "/api/v1/analytics/worker-metrics").await;
    let of_steps = sum(&workers["timeSeries"], "dbErrors");
    let total = workers["summary"]["totalDbErrors"].as_i64();
    assert_eq!(total, Some(of_steps));
    let number = status["errors"]["dbErrors"].as_i64();
    (number.expect("a number"), of_steps)
}

async fn refused_push(server: &Server) {
    let items = json!({"items": [{"queue": "q", "payload": 1}]});
    let answer = server.post("/api/v1/push", &items).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
}

#[tokio::test]
async fn a_file_that_cannot_be_written_is_counted() {
    let fixture = Fixture::sqlite();
    let flags = ["--sqlite-busy-timeout", "50ms"];
    let server = fixture.serve().flags(&flags).start().await;
    assert_eq!(errors(&server).await, (0, 0));
    let path = fixture.data().join("wakeline.db");
    let file = Sqlite::open(&path, &wakeline_store::sqlite::Options::default(), &[]).unwrap();
    let (held, is_held) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let holding = tokio::spawn(async move {
        file.write("hold", move |_| {
            held.send(()).expect("the test waits");
            let _ = released.recv();
            Ok::<_, Error>(())
        })
        .await
    });
    tokio::task::spawn_blocking(move || is_held.recv())
        .await
        .unwrap()
        .unwrap();
    refused_push(&server).await;
    drop(release);
    holding.await.unwrap().unwrap();
    // The other end may still be closing the file.
    until("errors to be told", async || {
        let (status, steps) = errors(&server).await;
        (status >= 1 && steps >= 1).then_some(())
    })
    .await;
    // For every queue: the failures are those of the whole server.
    let of_queue = read(&server, "/api/v1/analytics/worker-metrics?queue=q").await;
    assert!(sum(&of_queue["timeSeries"], "dbErrors") >= 1, "{of_queue}");
}

#[tokio::test]
async fn a_stopped_database_is_counted() {
    let mut postgres = Postgres::start().unwrap();
    let fixture = Fixture::postgres_at(postgres.url());
    let server = fixture.serve().start().await;
    assert_eq!(errors(&server).await, (0, 0));
    postgres.stop().unwrap();
    refused_push(&server).await;
    postgres.start_again().unwrap();
    until("errors to be told", async || {
        let answer = server.get("/api/v1/status").await;
        if answer.status != 200 {
            return None;
        }
        server.post("/api/v1/stats/refresh", &json!({})).await;
        let errors = answer.json()["errors"]["dbErrors"].as_i64();
        (errors.expect("a number") >= 1).then_some(())
    })
    .await;
}
