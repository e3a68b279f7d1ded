//! The tests that the design of long-polling reads names.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use wakeline_jobs::{service::Settings, topic::Wait};
use wakeline_testkit::{eventually, soon};

use crate::{
    database::Database,
    node::{Node, OneNode, answered, patient},
    provider::{Provider, hash_of},
};

pub(crate) async fn cache_hit(node: OneNode) {
    let mut provider = node.provider("a").await;
    provider.answer(&node, &hash_of("path=/x"), "[1]").await;
    let read = node.read_with("a?path=/x", &[("prefer", "wait=3")]);
    let answer = answered(read).await;
    answer.is_ok("[1]");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    // The read has not waited.
    assert_eq!(answer.header("preference-applied"), None);
    assert_eq!(answer.header("server-timing"), None);
    provider.assert_no_request(&node).await;
}

pub(crate) async fn cache_miss_with_a_fast_provider(node: OneNode) {
    let mut provider = node.provider("a").await;
    let read = node.read("a?path=/x&glob=*&path=/y");
    let (hash, params) = provider.next_request().await;
    assert_eq!(params, json!({ "glob": "*", "path": "/y" }));
    assert_eq!(hash, hash_of("path=/y&glob=*"));
    provider.answer(&node, &hash, "[2]").await;
    let answer = answered(read).await;
    answer.is_ok("[2]");
    assert!(answer.header("server-timing").is_some(), "it was held");
    provider.assert_no_request(&node).await;
    assert_eq!(node.in_flight("a").await, 0);
}

pub(crate) async fn cache_miss_with_a_slow_provider(node: OneNode) {
    let mut provider = node.provider("a").await;
    let slow = node.read("a?n=1");
    let (first, _) = provider.next_request().await;
    // Other reads are answered meanwhile.
    for (query, body) in [("n=2", "[2]"), ("n=3", "[3]")] {
        let read = node.read(&format!("a?{query}"));
        let (hash, _) = provider.next_request().await;
        provider.answer(&node, &hash, body).await;
        assert_eq!(answered(read).await.body, body);
    }
    node.readers_are(1).await;
    assert!(!slow.is_finished());
    provider.answer(&node, &first, "[1]").await;
    assert_eq!(answered(slow).await.body, "[1]");
    node.readers_are(0).await;
    provider.assert_no_request(&node).await;
}

pub(crate) async fn timeout(database: Database) {
    let hasty = Settings {
        read_hold: Duration::from_millis(50),
        ..patient()
    };
    let node = Node::with(&database, hasty.clone()).await;
    let mut provider = node.provider("a").await;
    let answer = answered(node.read("a")).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(answer.header("retry-after"), Some("2"));
    let timing = answer.header("server-timing").unwrap();
    assert!(timing.starts_with("hold;dur="), "{timing}");
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    insta::allow_duplicates! {
        insta::assert_snapshot!(answer.json(), @r#"{"detail":"Provider 'r:fs:a' did not respond within 0.05s","status":504,"title":"Gateway Timeout","type":"/v1/problems/provider-timeout"}"#);
    }
    node.readers_are(0).await;
    let (hash, _) = provider.next_request().await;
    // A late answer is found by the next read.
    provider.answer(&node, &hash, "late").await;
    assert_eq!(answered(node.read("a")).await.body, "late");
    provider.assert_no_request(&node).await;

    let not_found = Settings {
        timeout_is_not_found: true,
        ..hasty
    };
    let node = Node::with(&database, not_found).await;
    let answer = answered(node.read("a?other=1")).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["type"], "/v1/problems/provider-timeout");
    assert_eq!(answer.header("retry-after"), Some("2"));
}

/// The answer arrives after the reader's check has read the store and before the reader gets its
/// result: first in the check before it registers, then in the one after.
pub(crate) async fn race_condition(database: Database) {
    answer_during_the_check(&Node::new(&database).await).await;
}

/// The same race with a result backend outside of the store.
pub(crate) async fn race_condition_with_results_outside_of_the_store(node: OneNode) {
    node.results.keep_apart();
    answer_during_the_check(&node).await;
}

async fn answer_during_the_check(node: &Node) {
    let provider = node.provider("a").await;
    for (after, query) in [(0, "n=0"), (1, "n=1")] {
        node.results.hold_up(after);
        let read = node.read(&format!("a?{query}"));
        node.results.is_held_up().await;
        provider.answer(node, &hash_of(query), "[4]").await;
        node.results.let_go();
        let answer = answered(read).await;
        assert_eq!(answer.body, "[4]", "look {after}");
    }
}

pub(crate) async fn abort(node: OneNode) {
    node.register("a").await;
    let mut stream = TcpStream::connect(node.address).await.unwrap();
    let head = format!(
        "GET /v1/joblib/rooms/r/providers/r:fs:a?n=1 HTTP/1.1\r\nHost: here\r\n\
         Authorization: Bearer {}\r\n\r\n",
        node.ben
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    eventually("the question to be asked", async || {
        node.in_flight("a").await == 1
    })
    .await;
    assert_eq!(node.engine.held(), 1);
    drop(stream);
    eventually("nobody to wait", async || node.engine.held() == 0).await;
    eventually("the mark to be gone", async || {
        node.in_flight("a").await == 0
    })
    .await;
    assert_eq!(node.engine.topic_count(), 0);
    // A later read sends a new request.
    let registered = node.register("b").await;
    let mut provider = Provider::join(&node, "b", registered.id()).await;
    for _ in 0..2 {
        let read = node.read("b");
        provider.next_request().await;
        read.abort();
        eventually("the mark to be gone", async || {
            node.in_flight("b").await == 0
        })
        .await;
    }
}

pub(crate) async fn inflight_dedup(node: OneNode) {
    let mut provider = node.provider("a").await;
    let first = node.read("a?n=1");
    let (hash, _) = provider.next_request().await;
    let second = node.read("a?n=1");
    node.readers_are(2).await;
    provider.answer(&node, &hash, "[1]").await;
    for read in [first, second] {
        assert_eq!(answered(read).await.body, "[1]");
    }
    provider.assert_no_request(&node).await;
}

pub(crate) async fn prefer_wait(database: Database) {
    let settings = Settings {
        max_read_hold: Duration::from_secs(20),
        ..patient()
    };
    let node = Node::with(&database, settings).await;
    let mut provider = node.provider("a").await;
    for (asked, applied) in [("wait=600", "wait=20"), ("wait=7", "wait=7")] {
        let query = format!("a?n={applied}");
        let read = node.read_with(&query, &[("prefer", asked)]);
        let (hash, _) = provider.next_request().await;
        provider.answer(&node, &hash, "[]").await;
        let answer = answered(read).await;
        assert_eq!(answer.header("preference-applied"), Some(applied));
    }
    // The request was sent, and the read did not wait.
    let answer = answered(node.read_with("a?n=0", &[("prefer", "wait=0")])).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(answer.header("preference-applied"), None);
    provider.next_request().await;
    let short = Settings {
        max_read_hold: Duration::from_millis(50),
        ..patient()
    };
    let node = Node::with(&database, short).await;
    let answer = answered(node.read_with("a?n=1", &[("prefer", "wait=600")])).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    let detail = "Provider 'r:fs:a' did not respond within 0.05s";
    assert_eq!(answer.json()["detail"], detail);
    assert_eq!(node.waiting(|wait| matches!(wait, Wait::Result(..))), 0);
}

/// The in-flight lock is stored, but the outcome of that write is unknown.
pub(crate) async fn a_request_whose_lock_has_an_unknown_outcome_is_sent(node: OneNode) {
    let mut provider = node.provider("a").await;
    node.results.fail("begin");
    let read = node.read("a");
    let (hash, _) = soon("the question", provider.next_request()).await;
    assert!(node.results.has_failed("begin"));
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn requests_of_a_batch_that_timed_out_are_not_sent_again(node: OneNode) {
    let made = node.tell("POST /v1/rooms", json!({ "room_id": "r" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    let registered = node
        .register_with("mount", json!({ "category": "frames" }))
        .await;
    let name = "r:frames:mount";
    let mut provider = Provider::join_as(&node, &node.anna, name, registered.id()).await;
    let count = json!({ "frame_count": 5 });
    let mounted = node.tell("PATCH /v1/rooms/r", count).await;
    assert_eq!(mounted.status, StatusCode::OK, "{mounted:?}");
    for _ in 0..2 {
        let prefer = [("prefer", "wait=1")];
        let late = node.send("GET /v1/rooms/r/frames", &node.ben, &prefer, "");
        let late = late.await;
        assert_eq!(late.status, StatusCode::GATEWAY_TIMEOUT);
        let timing = late.header("server-timing").unwrap();
        assert!(timing.starts_with("hold;dur="), "{timing}");
    }
    let mut asked = Vec::new();
    for _ in 0..5 {
        let (hash, params) = provider.next_request().await;
        asked.push(params["index"].clone());
        let frame = [&b"\x81\xa4mark\xa1"[..], b"x"].concat();
        let uploaded = provider.upload(&node, &hash, frame, &[]).await;
        assert_eq!(uploaded.status, StatusCode::NO_CONTENT, "{uploaded:?}");
    }
    asked.sort_by_key(ToString::to_string);
    assert_eq!(json!(asked), json!(["0", "1", "2", "3", "4"]));
    provider.assert_no_request(&node).await;
    let all = node.send("GET /v1/rooms/r/frames", &node.ben, &[], "");
    assert_eq!(all.await.status, StatusCode::OK);
}
