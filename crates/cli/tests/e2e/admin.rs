//! The routes for people and dashboards, on both stores. The shapes are Queen 1.3.0's.

mod curate;
mod numbers;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::{
    ground::{Ground, on_both_stores},
    server::Server,
    wire::{Answer, request},
};

on_both_stores! {
    queues_are_listed_and_shown,
    a_queue_of_any_name_is_shown,
    groups_are_listed_and_shown,
    messages_are_listed_in_pages,
    a_message_is_shown_with_its_groups,
    dead_letters_are_listed_in_pages,
    traces_are_told_and_read,
    what_is_wrong_is_named,
    nothing_is_shown_of_an_empty_server,
}

/// Pushes to a partition under transaction ids, and gives the partition's id.
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

/// What a pop gets: its lease, and the messages.
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

async fn bury(server: &Server, queue: &str, group: &str) {
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

/// All of these members are there, and of the nested ones too.
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

async fn queues_are_listed_and_shown(ground: Ground) {
    let server = ground.serve().start().await;
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
            "queue.priority",
            "partitions.1.id",
        ],
    );
    assert_eq!(status["queue"]["config"]["retryLimit"], 3);
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

async fn a_queue_of_any_name_is_shown(ground: Ground) {
    let server = ground.serve().start().await;
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

async fn groups_are_listed_and_shown(ground: Ground) {
    let server = ground.serve().start().await;
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
    assert_eq!(all[1]["state"], "Stable", "somebody works on it");
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

async fn messages_are_listed_in_pages(ground: Ground) {
    let server = ground.serve().start().await;
    push(&server, "q", "p", &["a", "b", "c", "d"]).await;
    push(&server, "q", "r", &["x"]).await;
    let list = async |query: &str| {
        let listed = read(&server, &format!("/api/v1/messages?queue=q{query}")).await;
        let messages = listed["messages"].as_array().unwrap();
        (names(messages).join(""), listed["total"].as_i64().unwrap())
    };
    let text = |text: &str, total: i64| (text.to_owned(), total);
    assert_eq!(list("").await, text("xdcba", 5));
    assert_eq!(list("&limit=2").await, text("xd", 5));
    assert_eq!(list("&limit=2&offset=2").await, text("cb", 5));
    assert_eq!(list("&offset=9").await, text("", 5));
    assert_eq!(list("&partition=p&limit=1").await, text("d", 4));
    assert_eq!(list("&to=2020-01-01T00:00:00Z").await, text("", 0));
    assert_eq!(
        list("&from=2020-01-01T00:00:00Z&limit=1").await,
        text("x", 5)
    );

    assert_eq!(complete(&server, "q", "__QUEUE_MODE__", 1).await, ["a"]);
    bury(&server, "q", "__QUEUE_MODE__").await;
    let listed = read(&server, "/api/v1/messages?queue=q&status=completed").await;
    let message = &listed["messages"][0];
    assert_eq!(
        listed["mode"],
        json!({"type": "queue", "hasQueueMode": true, "busGroupsCount": 0})
    );
    assert_eq!(
        (&message["status"], &message["queueStatus"]),
        (&json!("completed"), &json!("completed"))
    );
    assert_eq!(message["payload"], json!({"name": "a"}));
    assert_eq!(message["data"], json!({"name": "a"}));
    assert_eq!(message["queuePath"], "q/p");
    assert_eq!(message["isEncrypted"], false);
    assert_eq!(
        message["busStatus"],
        json!({"consumedBy": 0, "totalGroups": 0})
    );
    assert_has(
        message,
        &[
            "id",
            "createdAt",
            "leaseExpiresAt",
            "namespace",
            "partition",
            "partitionId",
            "payloadAvailable",
            "producerSub",
            "queue",
            "queuePriority",
            "segment.frameIdx",
            "segment.seq",
            "task",
            "traceId",
            "transactionId",
            "txnHash",
        ],
    );
    let total = list("&status=completed").await.1
        + list("&status=pending").await.1
        + list("&status=processing").await.1
        + list("&status=dead_letter").await.1;
    assert_eq!(total, 5);
    assert_eq!(list("&status=dead_letter").await.1, 1);
    let everywhere = read(&server, "/api/v1/messages?limit=0").await;
    assert_eq!(
        (&everywhere["total"], &everywhere["messages"]),
        (&json!(5), &json!([]))
    );
}

async fn a_message_is_shown_with_its_groups(ground: Ground) {
    let server = ground.serve().start().await;
    let partition = push(&server, "q", "p", &["a", "b"]).await;
    let path = format!("/api/v1/messages/{partition}/a");
    let message = read(&server, &path).await;
    assert_eq!(message["status"], "pending");
    assert_eq!(message["mode"]["type"], "none");
    complete(&server, "q", "g", 1).await;
    pop(&server, "q", "__QUEUE_MODE__", 1).await;
    let message = read(&server, &path).await;
    assert_eq!(message["status"], "processing");
    assert_eq!(
        message["mode"],
        json!({"type": "hybrid", "hasQueueMode": true, "busGroupsCount": 1})
    );
    assert!(message["leaseExpiresAt"].is_string());
    let groups = message["consumerGroups"].as_array().unwrap();
    assert_eq!(
        (&groups[0]["name"], &groups[0]["consumed"]),
        (&json!("__QUEUE_MODE__"), &json!(false))
    );
    assert!(groups[0]["leaseExpiresAt"].is_string());
    assert_eq!(
        (&groups[1]["group"], &groups[1]["consumed"]),
        (&json!("g"), &json!(true))
    );
    assert_eq!(message["queueConfig"]["retryLimit"], 3);
    assert_has(
        &message,
        &[
            "queueConfig.leaseTime",
            "queueConfig.priority",
            "queueConfig.retryDelay",
            "queueConfig.ttl",
            "errorMessage",
            "retryCount",
            "queuePath",
            "payload",
            "data",
        ],
    );
    let missing = server
        .get(&format!("/api/v1/messages/{partition}/nope"))
        .await;
    assert_eq!(missing.status, 404);
    assert_eq!(missing.problem()["error"], "Message not found");
}

async fn dead_letters_are_listed_in_pages(ground: Ground) {
    let server = ground.serve().start().await;
    push(&server, "q", "p", &["a", "b", "c"]).await;
    for _ in 0..3 {
        bury(&server, "q", "g").await;
    }
    bury(&server, "q", "h").await;
    let list = async |query: &str| {
        let listed = read(&server, &format!("/api/v1/dlq?{query}")).await;
        let messages = listed["messages"].as_array().unwrap();
        (names(messages).join(""), listed["total"].as_i64().unwrap())
    };
    let text = |text: &str, total: i64| (text.to_owned(), total);
    assert_eq!(list("queue=q").await, text("acba", 4));
    assert_eq!(list("queue=q&consumerGroup=g&limit=2").await, text("cb", 3));
    assert_eq!(
        list("queue=q&consumerGroup=g&limit=2&offset=2").await,
        text("a", 3)
    );
    assert_eq!(list("queue=q&partition=other").await, text("", 0));
    assert_eq!(list("queue=q&to=2020-01-01T00:00:00Z").await, text("", 0));
    assert_eq!(list("queue=nonexistent&limit=1").await, text("", 0));
    let listed = read(&server, "/api/v1/dlq?queue=q&limit=1").await;
    assert_eq!(listed["pagination"], json!({"limit": 1, "offset": 0}));
    let letter = &listed["messages"][0];
    assert_eq!(letter["errorMessage"], "because");
    assert_eq!(letter["consumerGroup"], "h");
    assert_eq!(letter["data"], json!({"name": "a"}));
    assert_has(
        letter,
        &[
            "createdAt",
            "failedAt",
            "id",
            "partition",
            "partitionId",
            "producerSub",
            "queue",
            "retryCount",
        ],
    );
}

async fn traces_are_told_and_read(ground: Ground) {
    let server = ground.serve().start().await;
    let partition = push(&server, "q", "p", &["a"]).await;
    let tell = async |body: Value| server.post("/api/v1/traces", &body).await;
    let told = tell(json!({
        "transactionId": "a", "partitionId": partition, "data": {"text": "hi"},
        "traceNames": ["one", "two"], "eventType": "step", "consumerGroup": "g",
    }))
    .await;
    assert_eq!(told.status, 201, "{}", told.text());
    let told = told.json();
    assert_eq!(told["success"], true);
    let short =
        tell(json!({"transactionId": "a", "partitionId": partition, "traceNames": "one"})).await;
    assert_eq!(short.status, 201, "{}", short.text());

    let path = format!("/api/v1/traces/{partition}/a");
    let traces = read(&server, &path).await;
    let first = &traces["traces"][0];
    assert_eq!(first["id"], told["traceId"]);
    assert_eq!(first["data"], json!({"text": "hi"}));
    assert_eq!(
        (&first["event_type"], &first["consumer_group"]),
        (&json!("step"), &json!("g"))
    );
    assert_eq!(first["trace_names"], json!(["one", "two"]));
    assert_has(first, &["worker_id", "created_at"]);
    let second = &traces["traces"][1];
    assert_eq!(
        (&second["event_type"], &second["consumer_group"]),
        (&json!("info"), &json!("__QUEUE_MODE__"))
    );

    let named = read(&server, "/api/v1/traces/by-name/one?limit=1").await;
    assert_eq!(named["total"], 2);
    assert_eq!(named["pagination"], json!({"limit": 1, "offset": 0}));
    let trace = &named["traces"][0];
    assert_eq!(
        (&trace["queue_name"], &trace["partition_name"]),
        (&json!("q"), &json!("p"))
    );
    assert_eq!(
        (&trace["transaction_id"], &trace["partition_id"]),
        (&json!("a"), &json!(partition))
    );
    assert_has(trace, &["message_payload"]);
    let names = read(&server, "/api/v1/traces/names?limit=5").await;
    assert_eq!(names["total"], 2);
    let one = names["trace_names"].as_array().unwrap();
    let one = one.iter().find(|name| name["trace_name"] == "one").unwrap();
    assert_eq!(
        (&one["trace_count"], &one["message_count"]),
        (&json!(2), &json!(1))
    );
    assert_has(one, &["last_seen"]);

    for (body, field) in [
        (json!({}), "body"),
        (json!({"transactionId": "a"}), "body"),
        (
            json!({"transactionId": "a", "partitionId": "x"}),
            "partitionId",
        ),
        (
            json!({"transactionId": "a", "partitionId": partition, "traceNames": [""]}),
            "traceNames[0]",
        ),
        (
            json!({"transactionId": "a", "partitionId": partition, "eventType": "\u{0}"}),
            "eventType",
        ),
    ] {
        let refused = tell(body).await;
        assert_eq!(refused.status, 400, "{field}: {}", refused.text());
        assert_eq!(refused.problem()["field"], field);
    }
    let unknown =
        tell(json!({"transactionId": "nope", "partitionId": partition, "data": {}})).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.problem()["error"], "Message not found");
}

async fn what_is_wrong_is_named(ground: Ground) {
    let server = ground.serve().start().await;
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

async fn nothing_is_shown_of_an_empty_server(ground: Ground) {
    let server = ground.serve().start().await;
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
