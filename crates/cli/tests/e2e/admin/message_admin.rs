//! Messages are deleted, retried and moved to the dead letters, and the waiters are woken.

use serde_json::json;

use super::{complete, delete, move_to_dead_letters, names, pop, push, read};
use crate::{
    fixture::{Fixture, on_both_stores},
    wire::post,
};

on_both_stores! {
    a_deleted_message_is_not_delivered,
    a_dead_letter_is_retried,
    a_retry_of_a_dead_letter_wakes_a_waiting_pop,
    a_message_is_moved_to_the_dead_letters,
    a_notify_call_is_accepted,
}

async fn a_deleted_message_is_not_delivered(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a", "b/ü", "c"]).await;
    let path = format!("/api/v1/messages/{partition}/b%2F%C3%BC");
    let answer = delete(&server, &path).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let deleted = answer.json();
    assert_eq!(deleted["success"], true);
    assert_eq!(deleted["partitionId"], partition);
    assert_eq!(deleted["transactionId"], "b/ü");
    let again = delete(&server, &path).await;
    assert_eq!(again.status, 404);
    assert_eq!(again.problem()["error"], "Message not found");
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(read(&server, "/api/v1/messages?queue=q").await["total"], 2);
    assert_eq!(complete(&server, "q", "g", 9).await, ["a", "c"]);
}

async fn a_dead_letter_is_retried(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a"]).await;
    let path = format!("/api/v1/messages/{partition}/a/retry");
    let refused = server.post(&path, &json!({})).await;
    assert_eq!(refused.status, 404);
    assert_eq!(refused.problem()["error"], "Message not found");
    move_to_dead_letters(&server, "q", "g").await;
    // With the body that the clients send, and without one.
    let answer = server.call(post(&path, "")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let retried = answer.json();
    assert_eq!(
        (&retried["success"], &retried["transactionId"]),
        (&json!(true), &json!("a"))
    );
    assert_eq!(read(&server, "/api/v1/dlq").await["total"], 0);
    let (_, messages) = pop(&server, "q", "g", 9).await;
    assert_eq!(names(&messages), ["a"]);
    assert_eq!(messages[0]["id"], retried["messageId"]);
    assert_eq!(messages[0]["data"], json!({"name": "a"}));
    assert_eq!(server.post(&path, &json!({})).await.status, 404);
}

async fn a_retry_of_a_dead_letter_wakes_a_waiting_pop(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a"]).await;
    move_to_dead_letters(&server, "q", "g").await;
    let held = server.hold("/api/v1/pop/queue/q?consumerGroup=g&wait=true&timeout=60000");
    server.until_waiting(1).await;
    let path = format!("/api/v1/messages/{partition}/a/retry");
    assert_eq!(server.post(&path, &json!({})).await.status, 200);
    let answer = held.await.expect("an answer");
    assert_eq!(answer.payloads(), [json!({"name": "a"})]);
}

async fn a_message_is_moved_to_the_dead_letters(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let partition = push(&server, "q", "p", &["a", "b"]).await;
    let path = format!("/api/v1/messages/{partition}/b/dlq");
    let unread = server.post(&path, &json!({})).await;
    assert_eq!(unread.status, 409, "{}", unread.text());
    assert_eq!(unread.problem()["type"], "urn:wakeline:conflict");
    assert_eq!(complete(&server, "q", "g", 1).await, ["a"]);
    let moved = server.post(&path, &json!({"error": "poison"})).await;
    assert_eq!(moved.status, 200, "{}", moved.text());
    assert_eq!(moved.json()["success"], true);
    let letters = read(&server, "/api/v1/dlq?queue=q").await;
    assert_eq!(letters["messages"][0]["errorMessage"], "poison");
    assert_eq!(letters["messages"][0]["consumerGroup"], "g");
    assert!(pop(&server, "q", "g", 9).await.1.is_empty());
    assert_eq!(server.post(&path, &json!({})).await.status, 409);
    let missing = format!("/api/v1/messages/{partition}/nope/dlq");
    assert_eq!(server.post(&missing, &json!({})).await.status, 404);
}

async fn a_notify_call_is_accepted(fixture: Fixture) {
    let server = fixture.serve().start().await;
    let notify = async |body| server.post("/internal/api/notify", &body).await;
    let noticed = notify(json!({"queue": "q", "partition": "p"})).await;
    assert_eq!(
        (noticed.status, noticed.json()),
        (200, json!({"status": "ok"}))
    );
    let refused = notify(json!({})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.problem()["field"], "queue");
    let refused = notify(json!({"queue": ""})).await;
    assert_eq!(refused.problem()["field"], "queue");
}
