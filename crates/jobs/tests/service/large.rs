//! Answers that are too long for one row of the store, as readers get them.

use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::json;
use wakeline_jobs::results::{ResultBackend, chunks::CHUNK_BYTES};
use wakeline_testkit::CommitAlone;

use crate::{
    node::{Node, OneNode, answered},
    provider::{Provider, hash_of},
};

const ERROR: [(&str, &str); 1] = [("x-result-status", "error")];
const READ: &str = "GET /v1/joblib/rooms/r/providers/r:fs:a";

/// Bytes of which no two chunks are the same.
fn patterned(length: usize) -> Vec<u8> {
    let words = (0_u32..).flat_map(u32::to_le_bytes);
    words.take(length).collect()
}

async fn uploaded(node: &Node, provider: &Provider, body: Vec<u8>) {
    let answer = provider.upload(node, &hash_of(""), body, &[]).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
}

pub(crate) async fn a_large_answer_is_served_with_its_length_and_etag(node: OneNode) {
    let mut provider = node.provider("a").await;
    let held = node.read("a");
    let (hash, _) = provider.next_request().await;
    let large = patterned(5 * CHUNK_BYTES + 3);
    let answer = provider.upload(&node, &hash, large.clone(), &[]).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    // A reader that waited, and one that comes later.
    let mut etag = String::new();
    for read in [held, node.read("a")] {
        let answer = answered(read).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert!(answer.body == large);
        let length = large.len().to_string();
        assert_eq!(answer.header("content-length"), Some(&*length));
        answer.header("etag").unwrap().clone_into(&mut etag);
    }
    let read = node.read_with("a", &[("if-none-match", &*etag)]);
    let answer = answered(read).await;
    assert_eq!(answer.status, StatusCode::NOT_MODIFIED);
    assert!(answer.body.is_empty());
}

pub(crate) async fn a_large_answer_replaced_during_a_read_is_read_whole(node: OneNode) {
    let provider = node.provider("a").await;
    let large = patterned(5 * CHUNK_BYTES);
    uploaded(&node, &provider, large.clone()).await;
    let reading = node.respond(READ, &node.ben, &[], "").await;
    uploaded(&node, &provider, b"[]".to_vec()).await;
    assert_eq!(answered(node.read("a")).await.body, "[]");
    node.results.sweep().done().await;
    let body = reading.into_body().collect().await.unwrap();
    assert!(body.to_bytes() == large);
}

pub(crate) async fn a_read_of_a_large_answer_that_is_lost_breaks_off(node: OneNode) {
    let provider = node.provider("a").await;
    uploaded(&node, &provider, patterned(5 * CHUNK_BYTES)).await;
    let reading = node.respond(READ, &node.ben, &[], "").await;
    assert_eq!(reading.status(), StatusCode::OK);
    let lost = "DELETE FROM jobs_chunk";
    node.database
        .run(lost, "DELETE FROM wakeline.jobs_chunk")
        .await;
    assert!(reading.into_body().collect().await.is_err());
    // A reader that has no byte of it yet gets an error.
    let answer = answered(node.read("a")).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
}

pub(crate) async fn a_large_problem_keeps_its_status(node: OneNode) {
    let provider = node.provider("a").await;
    let problem = json!({ "title": "Gone", "status": 410, "detail": "not here" }).to_string();
    // A problem that is too long to be parsed is a failure all the same.
    for (length, status) in [
        (2 * CHUNK_BYTES, StatusCode::GONE),
        (4 * CHUNK_BYTES, StatusCode::BAD_GATEWAY),
    ] {
        let long = format!("{}{problem}", " ".repeat(length));
        let answer = provider
            .upload(&node, &hash_of(""), long.clone(), &ERROR)
            .await;
        assert_eq!(answer.status, StatusCode::NO_CONTENT);
        let answer = answered(node.read("a")).await;
        assert_eq!(answer.status, status);
        assert!(answer.body == long);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
    }
}
