//! Claims whose answer reaches no worker, and which claim is served next.

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;
use wakeline_jobs::task::Status;
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    database::Database,
    node::{Node, OneNode, answered},
    tasks::{claim, claims_are, job, submit},
};

const CLAIM: &str = "POST /v1/joblib/tasks/claim";

fn id(task: &Value) -> Uuid {
    task.as_str().unwrap().parse().unwrap()
}

async fn status(node: &Node, task: Uuid) -> Status {
    node.store.task(task).await.unwrap().unwrap().status
}

/// The answer was ready when its client hung up, and was not sent.
pub(crate) async fn a_task_claimed_for_a_worker_that_hung_up_is_released(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let (first, second) = (submit(&node, "a").await, submit(&node, "a").await);
    let body = json!({ "worker_id": worker }).to_string();
    let unread = node.respond(CLAIM, &node.anna, &[], body).await;
    assert_eq!(status(&node, id(&first)).await, Status::Claimed);
    drop(unread);
    eventually("the task to be back", async || {
        status(&node, id(&first)).await == Status::Pending
    })
    .await;
    let returned = node.store.task(id(&first)).await.unwrap().unwrap();
    assert_eq!((returned.worker, returned.queue_position), (None, Some(1)));
    // The task kept its place in the queue.
    for task in [first, second] {
        let next = answered(claim(&node, &worker)).await;
        assert_eq!(next.json()["task"]["id"], task);
        assert_eq!(status(&node, id(&task)).await, Status::Claimed);
    }
}

pub(crate) async fn a_released_task_wakes_a_held_claim(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    let body = json!({ "worker_id": worker }).to_string();
    let unread = node.respond(CLAIM, &node.anna, &[], body).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    drop(unread);
    assert_eq!(answered(held).await.json()["task"]["id"], task);
}

pub(crate) async fn a_released_task_wakes_a_held_claim_on_another_node(database: Database) {
    let Some([node, other]) = Node::pair(&database).await else {
        return;
    };
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    let body = json!({ "worker_id": worker }).to_string();
    let unread = node.respond(CLAIM, &node.anna, &[], body).await;
    let prefer = [("prefer", "wait=30")];
    let body = json!({ "worker_id": worker }).to_string();
    let held = other.begin(CLAIM, &node.anna, &prefer, body);
    claims_are(&other, 1).await;
    drop(unread);
    assert_eq!(answered(held).await.json()["task"]["id"], task);
}

/// The claim is committed, and its client hangs up before the service has the result.
pub(crate) async fn a_hang_up_during_the_claim_releases_the_task(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    node.results.hold_up(0);
    let gone = claim(&node, &worker);
    node.results.is_held_up().await;
    gone.abort();
    eventually("nobody to wait", async || node.engine.held() == 0).await;
    assert_eq!(status(&node, id(&task)).await, Status::Claimed);
    node.results.let_go();
    let next = answered(claim(&node, &worker)).await;
    assert_eq!(next.json()["task"]["id"], task);
}

/// The store is unavailable at the first attempt to release the task.
pub(crate) async fn a_release_that_fails_is_repeated_when_the_store_is_back(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let task = submit(&node, "a").await;
    let body = json!({ "worker_id": worker }).to_string();
    let unread = node.respond(CLAIM, &node.anna, &[], body).await;
    node.results.fail("unclaim");
    drop(unread);
    let next = answered(claim(&node, &worker)).await;
    assert_eq!(next.json()["task"]["id"], task);
    assert!(node.results.has_failed("unclaim"));
}

/// A worker that is woken for a task of one job gets an older task of another job, for which
/// another claim has been woken and has not checked yet.
pub(crate) async fn a_claim_that_finds_a_task_of_another_job_passes_its_wake_on(node: OneNode) {
    let both = job(&node, "a", json!({})).await;
    job(&node, "b", json!({ "worker_id": both })).await;
    let one = job(&node, "a", json!({})).await;
    let both = claim(&node, &both);
    claims_are(&node, 2).await;
    let one = claim(&node, &one);
    claims_are(&node, 3).await;
    let older = crate::lost_hints::new_task("b");
    let older_id = older.id;
    node.store.submit(older).done().await;
    let newer = submit(&node, "a").await;
    assert_eq!(answered(both).await.json()["task"]["id"], json!(older_id));
    assert_eq!(answered(one).await.json()["task"]["id"], newer);
}

pub(crate) async fn an_update_with_the_id_of_a_lost_worker_is_refused(node: OneNode) {
    let retried = json!({ "max_retries": 1 });
    let lost = job(&node, "a", retried.clone()).await;
    let worker = job(&node, "a", retried).await;
    let task = submit(&node, "a").await;
    answered(claim(&node, &lost)).await;
    let remove = format!("DELETE /v1/joblib/workers/{lost}");
    node.send(&remove, &node.anna, &[], "").await;
    let taken = answered(claim(&node, &worker)).await;
    assert_eq!(taken.json()["task"]["id"], task);
    let what = format!("PATCH /v1/joblib/tasks/{}", task.as_str().unwrap());
    let running = |worker: &str| json!({ "status": "running", "worker_id": worker });
    let refused = node.tell(&what, running(&lost)).await;
    assert_eq!(refused.status, StatusCode::CONFLICT);
    let kind = refused.json()["type"].clone();
    assert_eq!(kind, "/v1/problems/not-the-workers-task");
    assert_eq!(node.tell(&what, running(&worker)).await.status, 200);
}
