//! A worker that waits for a task with nothing but a held claim.

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, on_both_stores},
    wire::{post, request, with_header},
};

on_both_stores! {
    a_claim_may_be_held_longer_than_the_worker_timeout,
}

/// The README's example, but faster.
async fn a_claim_may_be_held_longer_than_the_worker_timeout(fixture: Fixture) {
    let flags = ["--jobs-worker-timeout", "3s"];
    let server = fixture.serve().flags(&flags).start().await;
    let job = json!({ "category": "analysis", "name": "Sum" }).to_string();
    let register = request("PUT", "/v1/joblib/rooms/lab/jobs", job.into());
    let worker = server.call(register).await.json()["worker_id"].clone();
    let claim = || {
        let body = json!({ "worker_id": worker }).to_string();
        with_header(post("/v1/joblib/tasks/claim", body), "prefer", "wait=7")
    };
    let answer = server.call(claim()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["task"], Value::Null);
    // The worker still exists, and gets the next task.
    let task = "/v1/joblib/rooms/lab/tasks/lab:analysis:Sum";
    let submitted = server.post(task, &json!({ "payload": {} })).await;
    assert_eq!(submitted.status, 202, "{}", submitted.text());
    let answer = server.call(claim()).await;
    assert_eq!(answer.json()["task"]["id"], submitted.json()["id"]);
}
