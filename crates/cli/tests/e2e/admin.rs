//! The routes for people and dashboards, on both stores. The shapes are Queen 1.3.0's.

mod analytics;
mod message_admin;
mod messages;
mod numbers;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, on_both_stores},
    server::Server,
    wire::{Answer, request},
};

on_both_stores! {
    queues_are_listed_and_shown,
    a_queue_of_any_name_is_shown,
    groups_are_listed_and_shown,
    bad_parameters_and_fields_are_refused_by_name,
    an_empty_server_has_empty_lists,
}

/// Pushes messages with these transaction ids to a partition, and returns the partition's id.
async fn push(server: &Server, queue: &str, partition: &str, ids: &[&str]) -> String {
    let mut partition_id = String::new();
    for id in ids {
        let item = json!({
            "queue": queue, "partition": partition, "payload": {"name": id}, "transactionId": id,
        });
        let answer = server.post("/api/v1/push", &json!({"items": [item]})).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        partition_id = answer.json()[0]["partition_id"]
            .as_str()
            .expect("a partition's id")
            .to_owned();
    }
    partition_id
}

/// The lease and the messages of a pop.
async fn pop(server: &Server, queue: &str, group: &str, batch: u32) -> (Value, Vec<Value>) {
    let path = format!("/api/v1/pop/queue/{queue}?batch={batch}&consumerGroup={group}");
    let answer = server.get(&path).await;
    if answer.status == 204 {
        return (Value::Null, Vec::new());
    }
    let popped = answer.json();
    let messages = popped["messages"].as_array().expect("messages").clone();
    (popped["leaseId"].clone(), messages)
}

async fn ack(server: &Server, message: &Value, group: &str, status: &str) {
    let body = json!({
        "transactionId": message["transactionId"], "partitionId": message["partitionId"],
        "leaseId": message["leaseId"], "consumerGroup": group, "status": status, "error": "because",
    });
    let answer = server.post("/api/v1/ack", &body).await;
    assert_eq!(answer.json()[0]["success"], true, "{}", answer.text());
}

async fn complete(server: &Server, queue: &str, group: &str, batch: u32) -> Vec<String> {
    let (_, messages) = pop(server, queue, group, batch).await;
    let last = messages.last().expect("a message");
    ack(server, last, group, "completed").await;
    names(&messages)
}

async fn move_to_dead_letters(server: &Server, queue: &str, group: &str) {
    let (_, messages) = pop(server, queue, group, 1).await;
    ack(server, &messages[0], group, "dlq").await;
}

fn names(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .map(|message| message["transactionId"].as_str().expect("an id").to_owned())
        .collect()
}

async fn read(server: &Server, path: &str) -> Value {
    let answer = server.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

async fn delete(server: &Server, path: &str) -> Answer {
    server.call(request("DELETE", path, Bytes::new())).await
}

/// Fails if one of these members is missing; `a.b` is a nested one.
fn assert_has(value: &Value, members: &[&str]) {
    for member in members {
        let mut at = value;
        for part in member.split('.') {
            at = match part.parse::<usize>() {
                Ok(index) => at.get(index),
                Err(_) => at.get(part),
            }
            .unwrap_or_else(|| panic!("no {member} in {value}"));
        }
    }
}

async fn queues_are_listed_and_shown(fixture: Fixture) {
    let server = fixture.serve().start().await;
    push(&server, "n.t", "p", &["a", "b", "c"]).await;
    push(&server, "n.t", "r", &["x"]).await;
    push(&server, "plain", "p", &["a"]).await;
    complete(&server, "plain", "__QUEUE_MODE__", 1).await;

    let all = read(&server, "/api/v1/resources/queues").await;
    assert_eq!((&all["total"], &all["kvRows"]), (&json!(2), &json!(0)));
    assert_eq!(all["queues"][0]["name"], "plain", "the newest first");
    assert_has(
        &all["queues"][1],
        &["createdAt", "id", "retainedBytes", "segments.segments"],
    );
    let queue = &all["queues"][1];
    assert_eq!(
        (&queue["namespace"], &queue["task"]),
        (&json!("n"), &json!("t"))
    );
    assert_eq!(queue["partitions"], 2);
    assert_eq!(queue["messages"]["total"], 4);
    assert_eq!(queue["messages"]["pending"], 4);
    assert_eq!(queue["messages"]["processing"], 0);
    let one = read(&server, "/api/v1/resources/queues?limit=1&offset=1").await;
    assert_eq!(one["queues"].as_array().unwrap().len(), 1);
    assert_eq!(one["queues"][0]["name"], "n.t");
    let filtered = read(&server, "/api/v1/resources/queues?namespace=plain").await;
    assert_eq!(filtered["total"], 1);

    let queue = read(&server, "/api/v1/resources/queues/n.t").await;
    assert_has(
        &queue,
        &["id", "createdAt", "segments.messages", "retainedBytes"],
    );
    assert_eq!(queue["totals"]["pending"], 4);
    assert_eq!(queue["totals"]["failed"], Value::Null);
    let partitions = queue["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 2);
    assert_eq!(partitions[0]["messages"]["pending"], 3);
    let status = read(&server, "/api/v1/status/queues/n.t").await;
    assert_has(
        &status,
        &[
            "queue.config.maxQueueSize",
            "queue.config.retryLimit",
            "queue.priority",
            "partitions.1.id",
        ],
    );
    assert_eq!(status["totals"]["messages"]["total"], 4);
    let listed = read(&server, "/api/v1/status/queues").await;
    assert_eq!(listed["queues"][0]["messages"]["completed"], 1);
    assert_eq!(listed["queues"][0]["messages"]["pending"], 0);

    let spaces = read(&server, "/api/v1/resources/namespaces").await;
    assert_eq!(
        spaces["namespaces"][0],
        json!({"namespace": "n", "queues": 1, "partitions": 2, "messages": {"total": 4, "pending": 4}})
    );
    let tasks = read(&server, "/api/v1/resources/tasks").await;
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(tasks["tasks"][0]["task"], "t");
    let partitions = read(&server, "/api/v1/resources/partitions?queue=n.t&limit=1").await;
    assert_eq!(partitions["total"], 2);
    assert_eq!(partitions["partitions"][0]["name"], "p");
    let none = read(&server, "/api/v1/resources/partitions?queue=none").await;
    assert_eq!(none["total"], 0);

    let depth = read(&server, "/api/v1/resources/queues/n.t/depth").await;
    assert_eq!(
        (&depth["pending"], &depth["partitionsPending"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(depth["conflation"], false);
    assert_eq!(depth["effectivePending"], 4);
    complete(&server, "n.t", "g", 3).await;
    let depth = read(&server, "/api/v1/resources/queues/n.t/depth?group=g").await;
    assert_eq!(
        (&depth["group"], &depth["pending"]),
        (&json!("g"), &json!(1))
    );
    assert_eq!(
        depth["partitions"][1],
        json!({"partition": "r", "pending": 1})
    );
    let depth = read(&server, "/api/v1/resources/queues/n.t/depth?group=new").await;
    assert_eq!(
        depth["pending"], 4,
        "all is ahead of a group that nobody knows"
    );

    let all = read(&server, "/api/v1/resources/overview").await;
    assert_has(
        &all,
        &[
            "lag.time.median",
            "lag.offset.avg",
            "throughput.ingestedPerSecond",
            "statsAge",
        ],
    );
    assert_eq!((&all["queues"], &all["partitions"]), (&json!(2), &json!(3)));
    assert_eq!((&all["namespaces"], &all["tasks"]), (&json!(2), &json!(1)));
    assert_eq!(all["messages"]["total"], 5);
}

async fn a_queue_of_any_name_is_shown(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for (name, encoded) in [
        ("sl/ash", "sl%2Fash"),
        ("sp ace", "sp%20ace"),
        ("üñ", "%C3%BC%C3%B1"),
        ("a%b", "a%25b"),
        ("dot.name", "dot.name"),
    ] {
        let partition = push(&server, name, name, &[name]).await;
        for path in [
            format!("/api/v1/resources/queues/{encoded}"),
            format!("/api/v1/messages/{partition}/{encoded}"),
        ] {
            let shown = read(&server, &path).await;
            let queue = shown.get("queue").unwrap_or(&shown["name"]);
            assert_eq!(*queue, name, "{path}");
        }
        for path in [
            format!("/api/v1/status/queues/{encoded}/messages"),
            format!("/api/v1/messages?queue={encoded}&partition={encoded}"),
        ] {
            let shown = read(&server, &path).await;
            assert_eq!(shown["total"], 1, "{path}");
            assert_eq!(shown["messages"][0]["transactionId"], name);
        }
        pop(&server, encoded, encoded, 1).await;
        let group = read(&server, &format!("/api/v1/consumer-groups/{encoded}")).await;
        assert_eq!(group[name]["partitions"][0]["partition"], name);
    }
}

async fn groups_are_listed_and_shown(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a", "b", "c"]).await;
    complete(&server, "q", "g", 1).await;
    let (lease, _) = pop(&server, "q", "h", 2).await;

    let all = read(&server, "/api/v1/consumer-groups").await;
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[0]["name"], &all[0]["queueName"]),
        (&json!("g"), &json!("q"))
    );
    assert_eq!(all[0]["topics"], json!(["q"]));
    assert_eq!(
        (&all[0]["totalLag"], &all[1]["totalLag"]),
        (&json!(2), &json!(3))
    );
    assert_eq!(all[0]["partitionsWithLag"], 1);
    assert_eq!(all[0]["subscriptionMode"], "all");
    assert_eq!(all[1]["state"], "Consuming", "a part of it is leased");
    assert_has(
        &all[0],
        &[
            "members",
            "state",
            "storage",
            "conflation",
            "maxTimeLag",
            "partitionCursors",
            "subscriptionCreatedAt",
            "subscriptionTimestamp",
        ],
    );
    let one = read(&server, "/api/v1/consumer-groups/h").await;
    let there = &one["q"]["partitions"][0];
    assert_eq!(there["workerId"], lease);
    assert_eq!(there["leaseActive"], true);
    assert_eq!(there["offsetLag"], 3);
    assert_has(
        there,
        &[
            "totalConsumed",
            "lastConsumedAt",
            "timeLagSeconds",
            "partition",
        ],
    );
    assert_eq!(one["q"]["conflation"], false);
    assert_eq!(
        read(&server, "/api/v1/consumer-groups/nope").await,
        json!({})
    );

    let lagging = read(&server, "/api/v1/consumer-groups/lagging?minLagSeconds=0").await;
    let lagging = lagging.as_array().unwrap();
    assert_eq!(lagging.len(), 2);
    assert_eq!(lagging[0]["consumer_group"], "h", "the oldest first");
    assert_eq!(lagging[0]["worker_id"], lease);
    assert_eq!(lagging[0]["partition_id"], partition);
    assert_has(
        &lagging[0],
        &[
            "lag_hours",
            "offset_lag",
            "queue_name",
            "partition_name",
            "last_consumed_at",
            "time_lag_seconds",
            "oldest_unconsumed_at",
        ],
    );
    assert_eq!(
        read(&server, "/api/v1/consumer-groups/lagging").await,
        json!([])
    );
}

async fn bad_parameters_and_fields_are_refused_by_name(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for (path, field) in [
        ("/api/v1/messages?limit=1001", "limit"),
        ("/api/v1/messages?limit=x", "limit"),
        ("/api/v1/messages?offset=-1", "offset"),
        ("/api/v1/messages?status=lost", "status"),
        ("/api/v1/messages?from=yesterday", "from"),
        ("/api/v1/messages?queue=%00", "queue"),
        ("/api/v1/messages?queue=", "queue"),
        ("/api/v1/messages?status=", "status"),
        ("/api/v1/messages/notauuid/a", "partitionId"),
        ("/api/v1/dlq?to=x", "to"),
        ("/api/v1/dlq?limit=-5", "limit"),
        (
            "/api/v1/consumer-groups/lagging?minLagSeconds=-1",
            "minLagSeconds",
        ),
        ("/api/v1/resources/queues?limit=10001", "limit"),
        ("/api/v1/resources/queues/%00", "queue"),
        ("/api/v1/status/analytics?interval=week", "interval"),
        (
            "/api/v1/status/analytics?interval=minute&from=2020-01-01T00:00:00Z",
            "interval",
        ),
        ("/api/v1/status?from=2999-01-01T00:00:00Z", "from"),
        ("/api/v1/analytics/queue-ops?to=x", "to"),
        ("/api/v1/traces/by-name/x?limit=x", "limit"),
        ("/api/v1/traces/names?offset=x", "offset"),
    ] {
        let refused = server.get(path).await;
        assert_eq!(refused.status, 400, "{path}: {}", refused.text());
        assert_eq!(refused.problem()["field"], field, "{path}");
    }
    for path in [
        "/api/v1/resources/queues/nope",
        "/api/v1/resources/queues/nope/depth",
        "/api/v1/status/queues/nope",
    ] {
        let missing = server.get(path).await;
        assert_eq!(missing.status, 404, "{path}");
        assert_eq!(missing.problem()["error"], "Queue not found");
    }
    let long = "x".repeat(300);
    let refused = server.get(&format!("/api/v1/messages?queue={long}")).await;
    assert_eq!(refused.problem()["field"], "queue");
}

async fn an_empty_server_has_empty_lists(fixture: Fixture) {
    let server = fixture.serve().start().await;
    for (path, empty) in [
        ("/api/v1/resources/queues", "queues"),
        ("/api/v1/resources/partitions", "partitions"),
        ("/api/v1/resources/namespaces", "namespaces"),
        ("/api/v1/resources/tasks", "tasks"),
        ("/api/v1/messages", "messages"),
        ("/api/v1/dlq", "messages"),
        ("/api/v1/traces/names", "trace_names"),
        ("/api/v1/traces/by-name/x", "traces"),
        ("/api/v1/status/queues", "queues"),
        ("/api/v1/status/queues/none/messages", "messages"),
    ] {
        assert_eq!(read(&server, path).await[empty], json!([]), "{path}");
    }
    for path in ["/api/v1/consumer-groups", "/api/v1/consumer-groups/lagging"] {
        assert_eq!(read(&server, path).await, json!([]), "{path}");
    }
}
