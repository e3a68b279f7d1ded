//! A held claim keeps its worker: it counts as the worker's heartbeat.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;
use wakeline_jobs::{page::Page, service::Settings};
use wakeline_testkit::eventually;

use crate::{
    database::Database,
    node::{Node, answered, patient},
    tasks::{claim, claims_are, job, submit},
};

const STEP: &str = "heartbeats";

/// Heartbeats come often. Nothing is swept, so that a late one costs no worker.
async fn node(database: &Database) -> Node {
    let settings = Settings {
        worker_timeout: Duration::from_millis(300),
        ..patient()
    };
    Node::with(database, settings).await
}

async fn heartbeat(node: &Node, worker: &str) -> Option<i64> {
    let id: Uuid = worker.parse().unwrap();
    let page = Page {
        limit: Page::MAX_LIMIT,
        offset: 0,
    };
    let workers = node.store.workers(page).await.unwrap().items;
    let summary = workers.into_iter().find(|summary| summary.worker.id == id);
    summary.map(|summary| summary.worker.last_heartbeat)
}

async fn has_heartbeat_after(node: &Node, worker: &str, before: Option<i64>) -> Option<i64> {
    let mut last = before;
    eventually("a heartbeat", async || {
        last = heartbeat(node, worker).await;
        last > before
    })
    .await;
    last
}

pub(crate) async fn a_held_claim_is_a_heartbeat_of_its_worker(database: Database) {
    let node = node(&database).await;
    let (one, other) = (
        job(&node, "a", json!({})).await,
        job(&node, "b", json!({})).await,
    );
    let silent = job(&node, "c", json!({})).await;
    let at_first = [
        heartbeat(&node, &one).await,
        heartbeat(&node, &other).await,
        heartbeat(&node, &silent).await,
    ];
    let held = [claim(&node, &one), claim(&node, &other)];
    claims_are(&node, 2).await;
    let mut last = at_first;
    for _ in 0..3 {
        last[0] = has_heartbeat_after(&node, &one, last[0]).await;
        last[1] = has_heartbeat_after(&node, &other, last[1]).await;
    }
    assert_eq!(heartbeat(&node, &silent).await, at_first[2]);
    let tasks = [submit(&node, "a").await, submit(&node, "b").await];
    for (held, task) in held.into_iter().zip(tasks) {
        assert_eq!(answered(held).await.json()["task"]["id"], task);
    }
}

pub(crate) async fn a_held_claim_of_a_lost_worker_ends(database: Database) {
    let node = node(&database).await;
    let (lost, other) = (
        job(&node, "a", json!({})).await,
        job(&node, "b", json!({})).await,
    );
    let (held, _stays) = (claim(&node, &lost), claim(&node, &other));
    claims_are(&node, 2).await;
    let before = heartbeat(&node, &lost).await;
    has_heartbeat_after(&node, &lost, before).await;
    let remove = format!("DELETE /v1/joblib/workers/{lost}");
    node.send(&remove, &node.anna, &[], "").await;
    let answer = answered(held).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND, "{answer:?}");
    // The heartbeats of other workers do not revive it.
    let before = heartbeat(&node, &other).await;
    has_heartbeat_after(&node, &other, before).await;
    assert_eq!(heartbeat(&node, &lost).await, None);
}

pub(crate) async fn a_claim_without_a_wait_is_no_heartbeat(database: Database) {
    let node = node(&database).await;
    let worker = job(&node, "a", json!({})).await;
    let before = heartbeat(&node, &worker).await;
    let body = json!({ "worker_id": worker }).to_string();
    let what = "POST /v1/joblib/tasks/claim";
    let at_once = node.send(what, &node.anna, &[], body.clone()).await;
    assert_eq!(at_once.json()["task"], Value::Null);
    // A claim that another user tries to hold is no heartbeat either.
    let prefer = [("prefer", "wait=30")];
    let refused = node.send(what, &node.ben, &prefer, body).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    submit(&node, "a").await;
    answered(claim(&node, &worker)).await;
    // A heartbeat of another worker was stored since then.
    let other = job(&node, "b", json!({})).await;
    let _held = claim(&node, &other);
    let before_other = heartbeat(&node, &other).await;
    has_heartbeat_after(&node, &other, before_other).await;
    assert_eq!(heartbeat(&node, &worker).await, before);
}

pub(crate) async fn heartbeats_are_sent_again_after_an_outage(database: Database) {
    let node = node(&database).await;
    node.results.fail(STEP);
    let worker = job(&node, "a", json!({})).await;
    let before = heartbeat(&node, &worker).await;
    let held = claim(&node, &worker);
    has_heartbeat_after(&node, &worker, before).await;
    assert!(node.results.has_failed(STEP));
    held.abort();
    let is_over = async || node.engine.held() == 0;
    eventually("the claim to end", is_over).await;
    // Heartbeats stop with the last held claim, and start again with the next one.
    let again = claim(&node, &worker);
    let before = heartbeat(&node, &worker).await;
    has_heartbeat_after(&node, &worker, before).await;
    submit(&node, "a").await;
    assert_eq!(answered(again).await.status, StatusCode::OK);
}
