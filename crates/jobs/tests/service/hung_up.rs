//! Callers that hang up while their write commits: the waiters are woken all the same. And callers
//! whose claim or request has to be released: the shutdown waits for that.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::task::JoinHandle;
use wakeline_jobs::{task::Status, topic::Wait};
use wakeline_testkit::{WriteBlock, eventually};

use crate::{
    node::{Answer, Node, OneNode, answered},
    tasks::{claim, claims_are, job, submit},
};

/// Drops the caller while the write waits for its commit, and then lets the write commit.
async fn hang_up(node: &Node, step: &'static str, block: WriteBlock, caller: JoinHandle<Answer>) {
    eventually("the write to begin", async || node.results.begun(step) > 0).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    drop(block);
}

pub(crate) async fn a_submit_wakes_a_claim(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    let block = node.database.block_all_writes().await;
    let what = "POST /v1/joblib/rooms/r/tasks/r:modifiers:a";
    let caller = node.begin(what, &node.ben, &[], "{}");
    hang_up(&node, "submit", block, caller).await;
    let answer = answered(held).await.json();
    assert_eq!(answer["task"]["job_name"], "r:modifiers:a");
}

pub(crate) async fn an_update_wakes_a_caller_that_waits_for_the_task(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    answered(claim(&node, &worker)).await;
    let what = format!("GET /v1/joblib/tasks/{}", task.as_str().unwrap());
    let held = node.begin(&what, &node.ben, &[("prefer", "wait=30")], "");
    eventually("it to be held", async || node.engine.held() == 1).await;
    let block = node.database.block_all_writes().await;
    let what = what.replace("GET", "PATCH");
    let body = json!({ "status": "failed" }).to_string();
    let caller = node.begin(&what, &node.anna, &[], body);
    hang_up(&node, "update", block, caller).await;
    assert_eq!(answered(held).await.json()["status"], "failed");
}

pub(crate) async fn an_upload_wakes_a_reader(node: OneNode) {
    let mut provider = node.provider("a").await;
    let held = node.read("a?path=/x");
    let (hash, _) = provider.next_request().await;
    node.readers_are(1).await;
    let block = node.database.block_all_writes().await;
    let what = format!("POST /v1/joblib/providers/{}/results", provider.id);
    let headers = [("x-request-hash", &*hash)];
    let caller = node.begin(&what, &node.anna, &headers, "[1]");
    hang_up(&node, "put", block, caller).await;
    assert_eq!(answered(held).await.body, "[1]");
}

pub(crate) async fn a_removed_worker_ends_its_claims(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    let block = node.database.block_all_writes().await;
    let what = format!("DELETE /v1/joblib/workers/{worker}");
    let caller = node.begin(&what, &node.anna, &[], "");
    hang_up(&node, "remove_worker", block, caller).await;
    assert_eq!(answered(held).await.status, StatusCode::NOT_FOUND);
    assert_eq!(node.waiting(|wait| matches!(wait, Wait::Claim(_))), 0);
}

/// How long the shutdown waits for the writes.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn shutdown_waits_until_an_undelivered_claim_is_released(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    let body = json!({ "worker_id": worker }).to_string();
    let what = "POST /v1/joblib/tasks/claim";
    let unread = node.respond(what, &node.anna, &[], body).await;
    // A first failure must not end the write: it is repeated.
    node.results.fail("unclaim");
    drop(unread);
    node.bus.finish_writes(PATIENCE).await;
    let task = task.as_str().unwrap().parse().unwrap();
    let task = node.store.task(task).await.unwrap().unwrap();
    assert_eq!(task.status, Status::Pending);
}

pub(crate) async fn shutdown_waits_until_the_request_of_a_reader_that_hung_up_is_withdrawn(
    node: OneNode,
) {
    let mut provider = node.provider("a").await;
    let read = node.read("a");
    provider.next_request().await;
    read.abort();
    assert!(read.await.unwrap_err().is_cancelled());
    node.bus.finish_writes(PATIENCE).await;
    assert_eq!(node.in_flight("a").await, 0);
}
