//! Answers in the files backend, and the sweep of expired answers.

use std::time::Duration;

use axum::body::Body;
use futures_util::future::join_all;
use http::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::AnswerKey,
    results::{ResultBackend, Upload, UploadMemory, UploadOutcome},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    database::Database,
    node::{Node, OneNode, Wiring, answered},
    provider::hash_of,
};

const ERROR: [(&str, &str); 1] = [("x-result-status", "error")];
/// So many that a sweep of one slice a second would take several seconds.
const MANY: usize = 2_000;

async fn with_files(database: &Database, directory: &TempDir) -> Node {
    let wiring = Wiring {
        files: Some((directory.path().join("answers"), 8 << 20)),
        ..Wiring::default()
    };
    Node::wired(database, wiring).await
}

pub(crate) async fn a_problem_in_the_files_backend_keeps_its_status(database: Database) {
    let directory = tempfile::tempdir().unwrap();
    let node = with_files(&database, &directory).await;
    let mut provider = node.provider("a").await;
    let read = node.read("a");
    let (hash, _) = provider.next_request().await;
    let problem = json!({ "title": "Gone", "status": 410, "detail": "not here" }).to_string();
    provider.upload(&node, &hash, problem.clone(), &ERROR).await;
    // A reader that waited, and one that comes later.
    for read in [read, node.read("a")] {
        let answer = answered(read).await;
        assert_eq!(
            (answer.status, &answer.body),
            (StatusCode::GONE, &problem.clone().into())
        );
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
    }
    // A problem that is too long to be parsed is a failure all the same.
    let long = format!("{}{problem}", " ".repeat(1 << 20));
    provider.upload(&node, &hash_of("x=1"), long, &ERROR).await;
    let answer = answered(node.read("a?x=1")).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
}

pub(crate) async fn an_answer_with_a_known_etag_is_304_from_the_files_backend(database: Database) {
    let directory = tempfile::tempdir().unwrap();
    let node = with_files(&database, &directory).await;
    let provider = node.provider("a").await;
    provider.answer(&node, &hash_of(""), "[1]").await;
    let answer = answered(node.read("a")).await;
    answer.is_ok("[1]");
    let etag = answer.header("etag").unwrap().to_owned();
    let known = [("if-none-match", etag.as_str())];
    let answer = answered(node.read_with("a", &known)).await;
    assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
    assert_eq!(answer.header("etag"), Some(etag.as_str()));
    assert!(answer.body.is_empty());
    provider.answer(&node, &hash_of(""), "[2]").await;
    let answer = answered(node.read_with("a", &known)).await;
    answer.is_ok("[2]");
}

pub(crate) async fn expired_answers_do_not_pile_up(node: OneNode) {
    let memory = UploadMemory::new(1 << 20);
    let puts = (0..MANY).map(|number| {
        let key = AnswerKey {
            provider: Uuid::nil(),
            version: 1,
            hash: number.to_string(),
        };
        let upload = Upload {
            is_error: false,
            body: Body::from("[]"),
            limit: 100,
            patience: Duration::from_secs(60),
            memory: memory.clone(),
        };
        let put = node.results.put(key, upload, Duration::ZERO, Wakes::none());
        put.commit_alone()
    });
    for kept in join_all(puts).await {
        assert_eq!(kept.unwrap(), UploadOutcome::Done);
    }
    assert_eq!(node.database.answers().await, MANY as i64);
    tokio::spawn(node.jobs.clone().sweep_results());
    eventually("all to be swept", async || {
        node.database.answers().await == 0
    })
    .await;
}
