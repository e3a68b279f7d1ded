//! Uploads that are refused, and what their sender is told.

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

fn told(answer: &Answer, status: StatusCode, words: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let detail = answer.json()["detail"].to_string();
    assert!(detail.contains(words), "{detail}");
}

/// Without a length.
fn streamed(chunks: usize) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    stream::iter((0..chunks).map(|_| Ok(Bytes::from_static(&[b'x'; KIB]))))
}

async fn is_not_kept(node: &Node) {
    let read = node.read_with("a", &[("prefer", "wait=0")]);
    let answer = crate::node::answered(read).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
}

pub(crate) async fn one_that_is_too_large_is_refused(database: Database) {
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
        told(&answer, too_large, "jobs.max_result");
        is_not_kept(&node).await;
    }
    let answer = provider
        .upload(&node, &hash_of(""), vec![b'x'; 2 * KIB], &[])
        .await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

pub(crate) async fn one_that_does_not_fit_on_disk_is_refused(database: Database) {
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
    told(&answer, StatusCode::PAYLOAD_TOO_LARGE, "jobs.files_size");
    is_not_kept(&node).await;
}

pub(crate) async fn one_that_stops_coming_is_given_up(database: Database) {
    let settings = Settings {
        upload_patience: Duration::from_millis(20),
        ..patient()
    };
    let node = Node::with(&database, settings).await;
    let provider = node.provider("a").await;
    let body = Body::from_stream(streamed(1).chain(stream::pending()));
    let answer = provider.upload(&node, &hash_of(""), body, &[]).await;
    told(&answer, StatusCode::REQUEST_TIMEOUT, "http.body_timeout");
    is_not_kept(&node).await;
}

/// An upload that goes on for as long as the sender is there.
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

pub(crate) async fn too_many_at_once_wait_for_memory(database: Database) {
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
    // It does not say how long it is, so it has what a long one has in hand: all there is.
    let (going, body) = slow();
    let first = upload("x=1", body);
    eventually("the first to have begun", async || node.free_memory() == 0).await;
    let refused = soon("a refusal", upload("x=2", Body::from("[]")))
        .await
        .unwrap();
    told(
        &refused,
        StatusCode::SERVICE_UNAVAILABLE,
        "jobs.upload_memory",
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    // One that waits is kept when the first is done.
    let second = upload("x=3", Body::from("[]"));
    drop(going);
    for upload in [first, second] {
        let answer = soon("it to be kept", upload).await.unwrap();
        assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    }
    assert_eq!(node.free_memory(), 2 * CHUNK_BYTES as u64);
}
