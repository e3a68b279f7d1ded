//! The tests that the design of long-polling reads asks for, by its names.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use wakeline_jobs::{service::Settings, topic::Wait};

use crate::{
    database::Database,
    door::eventually,
    node::{Node, answered, patient},
    provider::hash_of,
};

pub(crate) async fn cache_hit(database: Database) {
    let node = Node::new(&database).await;
    let mut provider = node.provider("a").await;
    provider.answer(&node, &hash_of("path=/x"), "[1]").await;
    let read = node.read_with("a?path=/x", &[("prefer", "wait=3")]);
    let answer = answered(read).await;
    assert_eq!(
        (answer.status, &answer.body[..]),
        (StatusCode::OK, &b"[1]"[..])
    );
    assert_eq!(answer.header("content-type"), Some("application/json"));
    // It has not waited.
    assert_eq!(answer.header("preference-applied"), None);
    assert_eq!(answer.header("server-timing"), None);
    provider.is_asked_nothing(&node).await;
}

pub(crate) async fn cache_miss_with_a_fast_provider(database: Database) {
    let node = Node::new(&database).await;
    let mut provider = node.provider("a").await;
    let read = node.read("a?path=/x&glob=*&path=/y");
    let (hash, params) = provider.asked().await;
    assert_eq!(params, json!({ "glob": "*", "path": "/y" }));
    assert_eq!(hash, hash_of("path=/y&glob=*"));
    provider.answer(&node, &hash, "[2]").await;
    let answer = answered(read).await;
    assert_eq!(
        (answer.status, &answer.body[..]),
        (StatusCode::OK, &b"[2]"[..])
    );
    assert!(answer.header("server-timing").is_some(), "it was held");
    provider.is_asked_nothing(&node).await;
    assert_eq!(node.in_flight("a").await, 0);
}

pub(crate) async fn cache_miss_with_a_slow_provider(database: Database) {
    let node = Node::new(&database).await;
    let mut provider = node.provider("a").await;
    let slow = node.read("a?n=1");
    let (first, _) = provider.asked().await;
    // Others come and are answered meanwhile.
    for (query, body) in [("n=2", "[2]"), ("n=3", "[3]")] {
        let read = node.read(&format!("a?{query}"));
        let (hash, _) = provider.asked().await;
        provider.answer(&node, &hash, body).await;
        assert_eq!(answered(read).await.body, body);
    }
    node.readers_are(1).await;
    assert!(!slow.is_finished());
    provider.answer(&node, &first, "[1]").await;
    assert_eq!(answered(slow).await.body, "[1]");
    node.readers_are(0).await;
    provider.is_asked_nothing(&node).await;
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
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    insta::allow_duplicates! {
        insta::assert_snapshot!(answer.json(), @r#"{"detail":"Provider 'r:fs:a' did not respond within 0.05s","status":504,"title":"Gateway Timeout","type":"/v1/problems/provider-timeout"}"#);
    }
    node.readers_are(0).await;
    let (hash, _) = provider.asked().await;
    // What comes too late is there for the next.
    provider.answer(&node, &hash, "late").await;
    assert_eq!(answered(node.read("a")).await.body, "late");
    provider.is_asked_nothing(&node).await;

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

/// The answer comes when the reader has looked, and before it knows that there was none: first
/// before it is registered, then after.
pub(crate) async fn race_condition(database: Database) {
    let node = Node::new(&database).await;
    let provider = node.provider("a").await;
    for (after, query) in [(0, "n=0"), (1, "n=1")] {
        node.results.hold_up(after);
        let read = node.read(&format!("a?{query}"));
        node.results.is_held_up().await;
        provider.answer(&node, &hash_of(query), "[4]").await;
        node.results.let_go();
        let answer = answered(read).await;
        assert_eq!(answer.body, "[4]", "look {after}");
    }
}

pub(crate) async fn abort(database: Database) {
    let node = Node::new(&database).await;
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
    // Whoever comes then asks anew.
    let registered = node.register("b").await;
    let mut provider = crate::provider::Provider::join(&node, "b", registered.id()).await;
    for _ in 0..2 {
        let read = node.read("b");
        provider.asked().await;
        read.abort();
        eventually("the mark to be gone", async || {
            node.in_flight("b").await == 0
        })
        .await;
    }
}

pub(crate) async fn inflight_dedup(database: Database) {
    let node = Node::new(&database).await;
    let mut provider = node.provider("a").await;
    let first = node.read("a?n=1");
    let (hash, _) = provider.asked().await;
    let second = node.read("a?n=1");
    node.readers_are(2).await;
    provider.answer(&node, &hash, "[1]").await;
    for read in [first, second] {
        assert_eq!(answered(read).await.body, "[1]");
    }
    provider.is_asked_nothing(&node).await;
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
        let (hash, _) = provider.asked().await;
        provider.answer(&node, &hash, "[]").await;
        let answer = answered(read).await;
        assert_eq!(answer.header("preference-applied"), Some(applied));
    }
    // Asked, and not waited for.
    let answer = answered(node.read_with("a?n=0", &[("prefer", "wait=0")])).await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(answer.header("preference-applied"), None);
    provider.asked().await;
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
