//! Uploads that are refused, and the texts of the refusals.

use std::{convert::Infallible, time::Duration};

use axum::body::{Body, Bytes};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use tokio::sync::mpsc;
use wakeline_jobs::{results::chunks::CHUNK_BYTES, service::Settings};
use wakeline_testkit::{eventually, soon};

use crate::{
    database::Database,
    node::{Answer, Node, Wiring, patient},
    provider::hash_of,
};

const KIB: usize = 1_024;

fn assert_refused(answer: &Answer, status: StatusCode, words: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let detail = answer.json()["detail"].to_string();
    assert!(detail.contains(words), "{detail}");
}

/// A body without a content length.
fn streamed(chunks: usize) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    stream::iter((0..chunks).map(|_| Ok(Bytes::from_static(&[b'x'; KIB]))))
}

async fn is_not_kept(node: &Node) {
    let read = node.read_with("a", &[("prefer", "wait=0")]);
    let answer = crate::node::answered(read).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
}

pub(crate) async fn an_upload_over_max_result_is_refused(database: Database) {
    let settings = Settings {
        max_result: 2 * KIB as u64,
        ..patient()
    };
    let node = Node::with(&database, settings).await;
    let provider = node.provider("a").await;
    let too_large = StatusCode::PAYLOAD_TOO_LARGE;
    for body in [
        vec![b'x'; 2 * KIB + 1].into(),
        Body::from_stream(streamed(3)),
    ] {
        let answer = provider.upload(&node, &hash_of(""), body, &[]).await;
        assert_refused(&answer, too_large, "jobs.max_result");
        is_not_kept(&node).await;
    }
    let answer = provider
        .upload(&node, &hash_of(""), vec![b'x'; 2 * KIB], &[])
        .await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

pub(crate) async fn an_upload_larger_than_the_files_directory_is_refused(database: Database) {
    let directory = tempfile::tempdir().unwrap();
    let wiring = Wiring {
        files: Some((directory.path().join("answers"), 8 * KIB as u64)),
        ..Wiring::default()
    };
    let node = Node::wired(&database, wiring).await;
    let provider = node.provider("a").await;
    let answer = provider
        .upload(&node, &hash_of(""), vec![b'x'; 9 * KIB], &[])
        .await;
    assert_refused(&answer, StatusCode::PAYLOAD_TOO_LARGE, "jobs.files_size");
    is_not_kept(&node).await;
}

pub(crate) async fn an_upload_that_stalls_gets_408(database: Database) {
    let settings = Settings {
        upload_patience: Duration::from_millis(20),
        ..patient()
    };
    let node = Node::with(&database, settings).await;
    let provider = node.provider("a").await;
    let body = Body::from_stream(streamed(1).chain(stream::pending()));
    let answer = provider.upload(&node, &hash_of(""), body, &[]).await;
    assert_refused(&answer, StatusCode::REQUEST_TIMEOUT, "http.body_timeout");
    is_not_kept(&node).await;
}

/// An upload that continues until its sender is dropped.
fn slow() -> (mpsc::Sender<()>, Body) {
    let (sender, going) = mpsc::channel(1);
    let chunks = stream::unfold(going, async |mut going| {
        let pause = Duration::from_millis(10);
        match tokio::time::timeout(pause, going.recv()).await {
            Ok(_) => None,
            Err(_) => Some((Ok::<_, Infallible>(Bytes::from_static(b"x")), going)),
        }
    });
    (sender, Body::from_stream(chunks))
}

pub(crate) async fn uploads_beyond_the_upload_memory_wait_for_it(database: Database) {
    let settings = Settings {
        max_result: 100 << 20,
        upload_memory: 2 * CHUNK_BYTES as u64,
        upload_patience: Duration::from_secs(1),
        ..patient()
    };
    let node = Node::with(&database, settings).await;
    let provider = node.provider("a").await;
    let upload = |query: &str, body: Body| {
        let what = format!("POST /v1/joblib/providers/{}/results", provider.id);
        let hash = hash_of(query);
        node.begin(
            &what,
            &node.anna,
            &[("x-request-hash", hash.as_str())],
            body,
        )
    };
    // Without a content length an upload reserves as much as a long one: all the memory.
    let (going, body) = slow();
    let first = upload("x=1", body);
    eventually("the first to have begun", async || node.free_memory() == 0).await;
    let refused = soon("a refusal", upload("x=2", Body::from("[]")))
        .await
        .unwrap();
    assert_refused(
        &refused,
        StatusCode::SERVICE_UNAVAILABLE,
        "jobs.upload_memory",
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    // The waiting upload is stored after the first one.
    let second = upload("x=3", Body::from("[]"));
    drop(going);
    for upload in [first, second] {
        let answer = soon("it to be kept", upload).await.unwrap();
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    }
    assert_eq!(node.free_memory(), 2 * CHUNK_BYTES as u64);
}
