//! The lists and views of messages, dead letters and traces.

use serde_json::{Value, json};

use super::{assert_has, complete, move_to_dead_letters, names, pop, push, read};
use crate::fixture::{Fixture, on_both_stores};

on_both_stores! {
    messages_are_listed_in_pages,
    a_message_is_shown_with_its_groups,
    dead_letters_are_listed_in_pages,
    traces_are_recorded_and_read,
}

async fn messages_are_listed_in_pages(fixture: Fixture) {
    let server = fixture.serve().start().await;
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
    move_to_dead_letters(&server, "q", "__QUEUE_MODE__").await;
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

async fn a_message_is_shown_with_its_groups(fixture: Fixture) {
    let server = fixture.serve().start().await;
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
    assert_has(
        &message,
        &[
            "queueConfig.leaseTime",
            "queueConfig.retryLimit",
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

async fn dead_letters_are_listed_in_pages(fixture: Fixture) {
    let server = fixture.serve().start().await;
    push(&server, "q", "p", &["a", "b", "c"]).await;
    for _ in 0..3 {
        move_to_dead_letters(&server, "q", "g").await;
    }
    move_to_dead_letters(&server, "q", "h").await;
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

async fn traces_are_recorded_and_read(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a"]).await;
    let record = async |body: Value| server.post("/api/v1/traces", &body).await;
    let recorded = record(json!({
        "transactionId": "a", "partitionId": partition, "data": {"text": "hi"},
        "traceNames": ["one", "two"], "eventType": "step", "consumerGroup": "g",
    }))
    .await;
    assert_eq!(recorded.status, 201, "{}", recorded.text());
    let recorded = recorded.json();
    assert_eq!(recorded["success"], true);
    let short =
        record(json!({"transactionId": "a", "partitionId": partition, "traceNames": "one"})).await;
    assert_eq!(short.status, 201, "{}", short.text());

    let path = format!("/api/v1/traces/{partition}/a");
    let traces = read(&server, &path).await;
    let first = &traces["traces"][0];
    assert_eq!(first["id"], recorded["traceId"]);
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
        (json!({}), "transactionId"),
        (json!({"transactionId": "a"}), "partitionId"),
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
        let refused = record(body).await;
        assert_eq!(refused.status, 400, "{field}: {}", refused.text());
        assert_eq!(refused.problem()["field"], field);
    }
    let unknown =
        record(json!({"transactionId": "nope", "partitionId": partition, "data": {}})).await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.problem()["error"], "Message not found");
}
