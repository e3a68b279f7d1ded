//! The answers of a provider, and how long they are kept.

use http::StatusCode;
use serde_json::json;

use crate::{
    node::{OneNode, answered},
    provider::{Provider, hash_of},
};

pub(crate) async fn an_uploaded_problem_answers_the_waiting_readers(node: OneNode) {
    let mut provider = node.provider("a").await;
    let reads = [node.read("a"), node.read("a")];
    let (hash, _) = provider.next_request().await;
    let problem = json!({ "title": "Gone", "status": 410, "detail": "not here" }).to_string();
    let error = [("x-result-status", "error")];
    let uploaded = provider.upload(&node, &hash, problem.clone(), &error).await;
    assert_eq!(uploaded.status, StatusCode::NO_CONTENT);
    for read in reads {
        let answer = answered(read).await;
        assert_eq!(answer.status, StatusCode::GONE);
        assert_eq!(answer.body, problem);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(answer.header("etag"), None);
    }
}

pub(crate) async fn a_failed_read_reported_in_the_chat_answers_the_waiting_reader(node: OneNode) {
    let mut provider = node.provider("a").await;
    let read = node.read("a");
    let (hash, _) = provider.next_request().await;
    let content = format!(
        "Provider `r:fs:a` read failed for request `{hash}`:\n```\nTraceback (most recent call \
         last):\n  File \"a.py\"\nOSError: no\n```"
    );
    let body = json!({ "content": content }).to_string();
    // A report by another user does not fail the read.
    node.send(
        "POST /v1/rooms/r/chat/messages",
        &node.ben,
        &[],
        body.clone(),
    )
    .await;
    assert_eq!(node.in_flight("a").await, 1);
    node.send("POST /v1/rooms/r/chat/messages", &node.anna, &[], body)
        .await;
    let answer = answered(read).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        answer.json()["type"],
        "/v1/problems/provider-execution-failed"
    );
    assert_eq!(answer.json()["detail"], "OSError: no");
}

pub(crate) async fn an_answer_with_a_known_etag_is_304(node: OneNode) {
    let provider = node.provider("a").await;
    provider.answer(&node, &hash_of(""), "[1]").await;
    let answer = answered(node.read("a")).await;
    let etag = answer.header("etag").unwrap().to_owned();
    assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
    for known in [etag.clone(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let read = node.read_with("a", &[("if-none-match", &known)]);
        let answer = answered(read).await;
        assert_eq!(answer.status, StatusCode::NOT_MODIFIED, "{known}");
        assert_eq!(answer.header("etag"), Some(etag.as_str()));
        assert_eq!(answer.header("cache-control"), Some("private, no-cache"));
        assert!(answer.body.is_empty());
    }
    provider.answer(&node, &hash_of(""), "[2]").await;
    let answer = answered(node.read_with("a", &[("if-none-match", &etag)])).await;
    answer.is_ok("[2]");
    assert_ne!(answer.header("etag"), Some(etag.as_str()));
}

pub(crate) async fn an_answer_is_kept_as_long_as_its_cache_control_says(node: OneNode) {
    let mut provider = node.provider("a").await;
    let no_store = [("cache-control", "no-store")];
    let read = node.read("a");
    let (hash, _) = provider.next_request().await;
    provider.upload(&node, &hash, "[1]", &no_store).await;
    assert_eq!(answered(read).await.body, "[1]", "who waits has it");
    // The answer expires soon, and the provider gets the request again.
    let mut asked = None;
    wakeline_testkit::eventually("it to be forgotten", async || {
        let read = node.read_with("a", &[("prefer", "wait=0")]);
        let is_gone = answered(read).await.status == StatusCode::GATEWAY_TIMEOUT;
        asked = asked.take().or(is_gone.then_some(()));
        asked.is_some()
    })
    .await;
    provider.next_request().await;
    let bad = provider
        .upload(&node, "h", "", &[("cache-control", "max-age=ever")])
        .await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        bad.json()["detail"][0]["loc"],
        json!(["header", "cache-control"])
    );
    let bad = node
        .register_with("b", json!({ "cache_control": "max-age=ever" }))
        .await;
    assert_eq!(bad.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        bad.json()["detail"][0]["loc"],
        json!(["body", "cache_control"])
    );
    let good = node
        .register_with("b", json!({ "cache_control": "public, max-age=60" }))
        .await;
    assert_eq!(good.status, StatusCode::CREATED);
    let known = node.store.provider(good.id()).await.unwrap().unwrap();
    assert_eq!(known.ttl, Some(std::time::Duration::from_secs(60)));
}

pub(crate) async fn a_provider_sets_how_long_its_answers_are_kept(node: OneNode) {
    let no_store = json!({ "cache_control": "no-store" });
    let registered = node.register_with("a", no_store).await;
    let provider = Provider::join(&node, "a", registered.id()).await;
    // The answer's own cache-control takes precedence.
    let longer = [("cache-control", "max-age=60")];
    let kept = provider
        .upload(&node, &hash_of("x=1"), "[1]", &longer)
        .await;
    assert_eq!(kept.status, StatusCode::NO_CONTENT);
    provider.answer(&node, &hash_of("x=2"), "[2]").await;
    let at_once = [("prefer", "wait=0")];
    wakeline_testkit::eventually("the provider's own time to be over", async || {
        let answer = answered(node.read_with("a?x=2", &at_once)).await;
        answer.status == StatusCode::GATEWAY_TIMEOUT
    })
    .await;
    let answer = answered(node.read_with("a?x=1", &at_once)).await;
    answer.is_ok("[1]");
}

pub(crate) async fn a_parameter_that_does_not_fit_is_named(node: OneNode) {
    let schema = json!({
        "type": "object",
        "properties": { "index": { "type": "integer", "minimum": 0 }, "path": { "type": "string" } },
        "required": ["path"],
        "additionalProperties": false,
    });
    let registered = node.register_with("a", json!({ "schema_": schema })).await;
    let mut provider = Provider::join(&node, "a", registered.id()).await;
    for (query, parameter) in [
        ("path=/&index=x", "index"),
        ("path=/&index=-1", "index"),
        ("index=1", "path"),
        ("path=/&other=1", "other"),
    ] {
        let answer = answered(node.read(&format!("a?{query}"))).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        let at = answer.json()["detail"][0]["loc"].clone();
        assert_eq!(at, json!(["query", parameter]), "{query}");
    }
    provider.assert_no_request(&node).await;
    let read = node.read("a?path=/&index=1");
    let (hash, params) = provider.next_request().await;
    assert_eq!(params, json!({ "index": "1", "path": "/" }));
    provider.answer(&node, &hash, "[]").await;
    assert_eq!(answered(read).await.status, StatusCode::OK);
}

/// The schema's text is changed past the store: a read that follows the new text has compiled again.
pub(crate) async fn a_schema_is_compiled_once_for_all_reads_of_a_registration(node: OneNode) {
    let needs_path = json!({ "schema_": { "required": ["path"] } });
    node.register_with("a", needs_path).await;
    let at_once = [("prefer", "wait=0")];
    let read = async || answered(node.read_with("a?x=1", &at_once)).await.status;
    assert_eq!(read().await, StatusCode::UNPROCESSABLE_ENTITY);
    node.database
        .run(
            "UPDATE jobs_provider SET schema = '{}'",
            "UPDATE wakeline.jobs_provider SET schema = '{}'",
        )
        .await;
    assert_eq!(read().await, StatusCode::UNPROCESSABLE_ENTITY);
    node.register("a").await;
    assert_eq!(read().await, StatusCode::GATEWAY_TIMEOUT);
}
