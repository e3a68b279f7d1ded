//! Waiters whose wake was lost are answered by the fallback's recheck; held requests are answered
//! when the node drains.

use axum::body::Body;
use http::StatusCode;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    name::FullName,
    provider::{AnswerKey, ProviderRequest},
    results::{ResultBackend, Upload, UploadMemory},
    task::{NewTask, Status, TaskUpdate},
    topic::Wait,
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    node::{OneNode, answered},
    provider::hash_of,
    tasks::{claim, claims_are, job, submit},
};

const HELD: [(&str, &str); 1] = [("prefer", "wait=30")];

pub(crate) fn new_task(name: &str) -> NewTask {
    NewTask {
        id: Uuid::new_v4(),
        job: FullName::new("r", "modifiers", name),
        room: "r".to_owned(),
        user: Uuid::nil(),
        payload: "{}".to_owned(),
        needs_worker: false,
    }
}

pub(crate) async fn a_recheck_finds_a_task_for_a_held_claim(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    let held = claim(&node, &worker);
    claims_are(&node, 1).await;
    // A claim registers before it checks, and would find the task by itself.
    let has_looked = async || node.results.looks() == 2;
    eventually("the claim to have found nothing", has_looked).await;
    assert_eq!(node.recheck().await, 0, "there is nothing yet");
    let task = new_task("a");
    let id = task.id;
    node.store.submit(task).done().await;
    assert_ne!(node.recheck().await, 0);
    assert_eq!(answered(held).await.json()["task"]["id"], json!(id));
}

pub(crate) async fn a_recheck_finds_a_new_job_of_a_held_claim(node: OneNode) {
    let created = node
        .send("POST /v1/joblib/workers", &node.anna, &[], "")
        .await;
    let held = claim(&node, &created.id().to_string());
    eventually("the claim to be held", async || node.engine.held() == 1).await;
    assert_eq!(node.recheck().await, 0, "there is nothing yet");
    let owner = node.store.worker_owner(created.id()).await.unwrap();
    let new = wakeline_jobs::job::NewJob {
        name: FullName::new("r", "modifiers", "a"),
        schema: "{}".to_owned(),
        max_retries: 0,
        user: owner.unwrap(),
        worker: Some(created.id()),
    };
    node.store.register_job(new).done().await;
    let task = new_task("a");
    let id = task.id;
    node.store.submit(task).done().await;
    // The request counts as held before its first check, which may just see this: then no
    // recheck is needed, and the answer is the same.
    node.recheck().await;
    assert_eq!(answered(held).await.json()["task"]["id"], json!(id));
}

pub(crate) async fn a_recheck_finds_the_end_of_a_task(node: OneNode) {
    job(&node, "a", json!({})).await;
    let task: Uuid = submit(&node, "a").await.as_str().unwrap().parse().unwrap();
    let what = format!("GET /v1/joblib/tasks/{task}");
    let wait = node.begin(&what, &node.ben, &HELD, "");
    eventually("it to be held", async || node.engine.held() == 1).await;
    assert_eq!(node.recheck().await, 0);
    let update = TaskUpdate {
        task,
        user: Uuid::nil(),
        is_superuser: true,
        status: Status::Cancelled,
        error: None,
        worker: None,
    };
    node.store.update(update).done().await;
    // The request counts as held before its first check, which may just see this: then no
    // recheck is needed, and the answer is the same.
    node.recheck().await;
    assert_eq!(answered(wait).await.json()["status"], "cancelled");
}

pub(crate) async fn a_recheck_finds_an_answer_for_a_reader(node: OneNode) {
    let registered = node.register("a").await;
    let read = node.read("a");
    eventually("it to be asked", async || node.in_flight("a").await == 1).await;
    assert_eq!(node.recheck().await, 0);
    let key = AnswerKey {
        provider: registered.id(),
        version: 1,
        hash: hash_of(""),
    };
    let upload = Upload {
        is_error: false,
        body: Body::from("[1]"),
        limit: 100,
        patience: Duration::from_secs(5),
        memory: UploadMemory::new(100),
    };
    node.results
        .put(key, upload, Duration::from_secs(60), Wakes::none())
        .done()
        .await;
    assert_eq!(node.recheck().await, 1);
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn a_recheck_finds_a_request_for_a_provider(node: OneNode) {
    let mut provider = node.provider("a").await;
    provider.assert_no_request(&node).await;
    let request = ProviderRequest {
        key: AnswerKey {
            provider: provider.id,
            version: 1,
            hash: hash_of("n=1"),
        },
        token: Uuid::new_v4(),
        params: r#"{"n":"1"}"#.to_owned(),
    };
    let begun = node
        .results
        .begin(request, Duration::from_secs(60))
        .commit_alone()
        .await;
    assert!(begun.unwrap());
    eventually("the provider to listen", async || {
        node.waiting(|wait| matches!(wait, Wait::Requests(_))) == 1
    })
    .await;
    assert_eq!(node.recheck().await, 1);
    assert_eq!(provider.next_request().await.0, hash_of("n=1"));
    // The request is sent once, however often the recheck runs.
    node.recheck().await;
    node.recheck().await;
    let read = node.read("a?n=2");
    assert_eq!(provider.next_request().await.0, hash_of("n=2"));
    read.abort();
}

pub(crate) async fn a_drain_answers_all_held_requests(node: OneNode) {
    let worker = job(&node, "a", json!({})).await;
    job(&node, "b", json!({})).await;
    let task = submit(&node, "b").await;
    node.register("a").await;
    let what = format!("GET /v1/joblib/tasks/{}", task.as_str().unwrap());
    let held = [
        claim(&node, &worker),
        node.begin(&what, &node.ben, &HELD, ""),
        node.read("a"),
    ];
    claims_are(&node, 1).await;
    eventually("all to be held", async || node.engine.held() == 3).await;
    eventually("it to be asked", async || node.in_flight("a").await == 1).await;
    node.engine.drain();
    for held in held {
        let answer = answered(held).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{answer:?}");
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(node.engine.held(), 0);
    eventually("the mark to be gone", async || {
        node.in_flight("a").await == 0
    })
    .await;
    let late = answered(node.read("a")).await;
    assert_eq!(late.status, StatusCode::SERVICE_UNAVAILABLE);
}
