//! Held claims and waits for the end of a task.

use http::StatusCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;
use wakeline_jobs::topic::Wait;
use wakeline_testkit::eventually;

use crate::{
    database::Database,
    node::{Answer, Node, OneNode, answered},
};

const HELD: [(&str, &str); 1] = [("prefer", "wait=30")];

/// Registers the job with a worker of Anna's, and returns the worker's id.
pub(crate) async fn job(node: &Node, name: &str, more: Value) -> String {
    let mut body = json!({ "category": "modifiers", "name": name });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let registered = node.tell("PUT /v1/joblib/rooms/r/jobs", body).await;
    assert!(registered.status.is_success(), "{registered:?}");
    registered.json()["worker_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn submit(node: &Node, name: &str) -> Value {
    let what = format!("POST /v1/joblib/rooms/r/tasks/r:modifiers:{name}");
    let submitted = node.send(&what, &node.ben, &[], "{}").await;
    assert_eq!(submitted.status, StatusCode::ACCEPTED, "{submitted:?}");
    submitted.json()["id"].clone()
}

pub(crate) fn claim(node: &Node, worker: &str) -> JoinHandle<Answer> {
    let body = json!({ "worker_id": worker }).to_string();
    node.begin("POST /v1/joblib/tasks/claim", &node.anna, &HELD, body)
}

/// Until `count` claims wait for tasks.
pub(crate) async fn claims_are(node: &Node, count: usize) {
    eventually(&format!("{count} claims to be held"), async || {
        node.waiting(|wait| matches!(wait, Wait::Claim(_))) == count
    })
    .await;
}

async fn update(node: &Node, task: &Value, status: &str) {
    let what = format!("PATCH /v1/joblib/tasks/{}", task.as_str().unwrap());
    let updated = node.tell(&what, json!({ "status": status })).await;
    assert_eq!(updated.status, StatusCode::OK, "{updated:?}");
}

async fn remove(node: &Node, worker: &str) {
    let what = format!("DELETE /v1/joblib/workers/{worker}");
    let removed = node.send(&what, &node.anna, &[], "").await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT);
}

pub(crate) async fn a_submit_wakes_a_claim(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    let task = submit(&node, "a").await;
    let answer = answered(held).await;
    assert_eq!(answer.json()["task"]["id"], task);
    assert_eq!(answer.header("preference-applied"), Some("wait=30"));
    assert_eq!(node.engine.held(), 0);
}

pub(crate) async fn a_submit_on_another_node_wakes_a_claim(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let worker = job(&one, "a", json!({})).await;
    let held = claim(&one, &worker);
    claims_are(&one, 1).await;
    let task = submit(&other, "a").await;
    assert_eq!(answered(held).await.json()["task"]["id"], task);
}

pub(crate) async fn one_submit_wakes_one_claim(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held: Vec<_> = (0..5).map(|_| claim(&node, &worker)).collect();
    claims_are(&node, 5).await;
    let in_vain = || -> u64 {
        let doors = node.engine.doors();
        doors.iter().flat_map(|(_, door)| door.nothing).sum()
    };
    let before = in_vain();
    let mut tasks = vec![submit(&node, "a").await];
    claims_are(&node, 4).await;
    for left in (0..4).rev() {
        tasks.push(submit(&node, "a").await);
        claims_are(&node, left).await;
    }
    let mut claimed = Vec::new();
    for claim in held {
        claimed.push(answered(claim).await.json()["task"]["id"].clone());
    }
    let sorted = |mut ids: Vec<Value>| {
        ids.sort_by_key(ToString::to_string);
        ids
    };
    assert_eq!(sorted(claimed), sorted(tasks));
    assert_eq!(in_vain(), before, "nobody was woken in vain");
}

pub(crate) async fn a_task_of_a_lost_worker_wakes_a_held_claim(node: OneNode) {
    let retried = json!({ "max_retries": 1 });
    let lost = job(&node, "a", retried.clone()).await;
    let task = submit(&node, "a").await;
    assert_eq!(
        answered(claim(&node, &lost)).await.json()["task"]["id"],
        task
    );
    let worker = job(&node, "a", retried).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    remove(&node, &lost).await;
    let answer = answered(held).await.json();
    assert_eq!(answer["task"]["id"], task);
    assert_eq!(answer["task"]["worker_id"], worker);
}

pub(crate) async fn a_held_claim_waits_for_a_job_that_its_worker_registers_later(node: OneNode) {
    let created = node
        .send("POST /v1/joblib/workers", &node.anna, &[], "")
        .await;
    let worker = created.id().to_string();
    let held = claim(&node, &worker);
    eventually("the claim to be held", async || node.engine.held() == 1).await;
    job(&node, "a", json!({ "worker_id": worker })).await;
    claims_are(&node, 1).await;
    let task = submit(&node, "a").await;
    assert_eq!(answered(held).await.json()["task"]["id"], task);
    // The same for a task that was submitted before.
    job(&node, "b", json!({})).await;
    let task = submit(&node, "b").await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    job(&node, "b", json!({ "worker_id": worker })).await;
    assert_eq!(answered(held).await.json()["task"]["id"], task);
}

pub(crate) async fn a_held_claim_of_a_removed_worker_gets_404(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    remove(&node, &worker).await;
    let answer = answered(held).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["type"], "/v1/problems/worker-not-found");
}

pub(crate) async fn the_end_of_a_task_wakes_the_callers_that_wait_for_it(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    let id: Uuid = task.as_str().unwrap().parse().unwrap();
    let what = format!("GET /v1/joblib/tasks/{id}");
    let waits: Vec<_> = (0..3)
        .map(|_| node.begin(&what, &node.ben, &HELD, ""))
        .collect();
    let are_held = async || node.waiting(|wait| *wait == Wait::Task(id)) == 3;
    eventually("all to be held", are_held).await;
    answered(claim(&node, &worker)).await;
    update(&node, &task, "running").await;
    eventually("all to be held still", are_held).await;
    assert!(waits.iter().all(|wait| !wait.is_finished()));
    update(&node, &task, "completed").await;
    for wait in waits {
        let answer = answered(wait).await;
        assert_eq!(answer.json()["status"], "completed");
        assert_eq!(answer.header("preference-applied"), Some("wait=30"));
    }
    let ended = node.send(&what, &node.ben, &HELD, "").await;
    assert_eq!(
        ended.header("preference-applied"),
        None,
        "it has not waited"
    );
    assert_eq!(node.engine.held(), 0);
}

pub(crate) async fn a_wait_for_a_task_ends_when_its_worker_is_removed(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    answered(claim(&node, &worker)).await;
    let what = format!("GET /v1/joblib/tasks/{}", task.as_str().unwrap());
    let wait = node.begin(&what, &node.ben, &HELD, "");
    eventually("it to be held", async || node.engine.held() == 1).await;
    remove(&node, &worker).await;
    let answer = answered(wait).await.json();
    assert_eq!(answer["status"], "failed");
    assert_eq!(answer["error"], "Worker disconnected");
}
