//! Names and texts that a database cannot store.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    node::{OneNode, answered},
    provider::hash_of,
    tasks,
};

pub(crate) async fn a_name_with_a_nul_is_not_found(node: OneNode) {
    let provider = node.provider("a").await;
    provider.answer(&node, &hash_of(""), "[1]").await;
    for what in [
        "GET /v1/joblib/rooms/r/providers/r:fs:%00",
        "GET /v1/joblib/rooms/r/providers/r:f%00s:a",
        "GET /v1/joblib/rooms/r/providers/fs/%00",
        "GET /v1/joblib/rooms/r/providers/r:fs:%00/info",
        "GET /v1/joblib/rooms/r/jobs/r:modifiers:%00",
        "GET /v1/joblib/rooms/r/jobs/r:modifiers:%00/tasks",
        "POST /v1/joblib/rooms/r/tasks/r:modifiers:%00",
    ] {
        // Reads at the same time are not affected.
        let beside: Vec<_> = (0..10).map(|_| node.read("a")).collect();
        let answer = node.send(what, &node.ben, &[], "{}").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{what} {answer:?}");
        for read in beside {
            assert_eq!(answered(read).await.status, StatusCode::OK);
        }
    }
}

pub(crate) async fn a_text_with_a_nul_is_refused(node: OneNode) {
    let worker = tasks::job(&node, "a", json!({})).await;
    let task = tasks::submit(&node, "a").await;
    answered(tasks::claim(&node, &worker)).await;
    let what = format!("PATCH /v1/joblib/tasks/{}", task.as_str().unwrap());
    let body = json!({ "status": "failed", "error": "a\0b" });
    let answer = node.tell(&what, body).await;
    assert_eq!(
        answer.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{answer:?}"
    );
    assert_eq!(answer.json()["detail"][0]["loc"], json!(["body", "error"]));
    let body = json!({ "category": "modifiers", "name": "a\0b" });
    let answer = node.tell("PUT /v1/joblib/rooms/r/jobs", body).await;
    assert_eq!(
        answer.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{answer:?}"
    );
    assert_eq!(answer.json()["detail"][0]["loc"], json!(["body", "name"]));
}

/// Characters of four bytes, no two alike, so that the text cannot be compressed.
fn long(count: u32, from: u32) -> String {
    let character = |number| char::from_u32(0x20000 + number * 7 % 0xa000).unwrap();
    (from..from + count).map(character).collect()
}

pub(crate) async fn names_fit_into_an_index(node: OneNode) {
    let offer = |name: String| -> Value { json!({ "category": "modifiers", "name": name }) };
    let room = long(255, 0);
    let room = room
        .bytes()
        .fold(String::new(), |text, byte| format!("{text}%{byte:02X}"));
    for kind in ["jobs", "providers"] {
        let what = format!("PUT /v1/joblib/rooms/{room}/{kind}");
        let answer = node.tell(&what, offer(long(254, 300))).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }
    // Providers have any category.
    let body = json!({ "category": long(255, 900), "name": long(255, 1_200) });
    let what = format!("PUT /v1/joblib/rooms/{room}/providers");
    let answer = node.tell(&what, body).await;
    assert_eq!(
        answer.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{answer:?}"
    );
    assert_eq!(answer.json()["detail"][0]["loc"], json!(["body", "name"]));
}
