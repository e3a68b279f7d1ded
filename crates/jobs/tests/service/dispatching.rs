//! Which sockets of a provider are sent what.

use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;
use wakeline_jobs::{
    provider::{AnswerKey, ProviderRequest},
    results::ResultBackend,
    topic::Wait,
};
use wakeline_testkit::{CommitAlone, eventually, soon};

use crate::{
    node::{Node, OneNode, answered},
    poller::Poller,
    provider::{Provider, hash_of},
};

const MANY: usize = 50;

async fn listening_are(node: &Node, count: usize) {
    eventually("the providers to listen", async || {
        node.waiting(|wait| matches!(wait, Wait::Requests(_))) == count
    })
    .await;
}

/// Asked on another node, whose hint is lost.
async fn mark(node: &Node, provider: Uuid, hash: String) {
    let request = ProviderRequest {
        key: AnswerKey {
            provider,
            version: 1,
            hash,
        },
        token: Uuid::new_v4(),
        params: "{}".to_owned(),
    };
    let begun = node
        .results
        .begin(request, Duration::from_secs(60))
        .commit_alone()
        .await;
    assert!(begun.unwrap());
}

pub(crate) async fn providers_without_questions_cost_nothing_each(node: OneNode) {
    let mut socket = Poller::open(node.address).await.unwrap();
    socket.connect(&node.anna).await.unwrap();
    let mut last = Uuid::nil();
    for number in 0..MANY {
        last = node.register(&number.to_string()).await.id();
        let join = format!(r#"42["join_provider_room",{{"provider_name":"r:fs:{number}"}}]"#);
        socket.say(&join).await.unwrap();
    }
    listening_are(&node, MANY).await;
    let reader = node.read("0");
    node.readers_are(1).await;
    assert_eq!(hear(&mut socket).await, hash_of(""));
    eventually("all to be quiet", async || node.results.steps() == 0).await;
    assert_eq!(node.recheck().await, 1, "the one that was asked");
    reader.abort();
    eventually("the mark to be gone", async || {
        node.in_flight("0").await == 0
    })
    .await;
    eventually("all to be quiet", async || node.results.steps() == 0).await;
    assert_eq!(node.recheck().await, 0);
    assert_eq!(node.results.steps(), 2, "for all of them together");
    mark(&node, last, hash_of("n=1")).await;
    assert_eq!(node.recheck().await, 1);
    assert_eq!(hear(&mut socket).await, hash_of("n=1"));
}

/// The hash of the next question.
async fn hear(socket: &mut Poller) -> String {
    let packet = soon("a question", socket.hear()).await.unwrap();
    let event: Value = serde_json::from_str(packet.strip_prefix("42").unwrap()).unwrap();
    assert_eq!(event[0], "provider_request", "{packet}");
    event[1]["request_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn a_newcomer_is_sent_what_is_open_when_the_store_is_back(node: OneNode) {
    let mut first = node.provider("a").await;
    let read = node.read("a");
    let (hash, _) = first.asked().await;
    node.results.fail("in_flight");
    let mut second = Provider::join(&node, "a", first.id).await;
    assert_eq!(soon("the question", second.asked()).await.0, hash);
    assert!(node.results.has_failed("in_flight"));
    second.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn who_leaves_and_joins_again_is_asked_once(node: OneNode) {
    let beside = node.provider("a").await;
    let mut provider = Provider::join(&node, "a", beside.id).await;
    let first = node.read("a?n=1");
    // So that it is known to be there.
    let (hash, _) = provider.asked().await;
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(first).await.body, "[1]");
    provider.say(&node, "leave", -1).await;
    provider.say(&node, "join", 1).await;
    let read = node.read("a?n=2");
    let (hash, _) = provider.asked().await;
    assert_eq!(hash, hash_of("n=2"));
    provider.is_asked_nothing(&node).await;
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn a_provider_that_is_anothers_by_now_is_asked_of_its_owner(node: OneNode) {
    let mut before = node.provider("a").await;
    let what = format!("DELETE /v1/joblib/providers/{}", before.id);
    let gone = node.send(&what, &node.anna, &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let body = json!({ "category": "fs", "name": "a" }).to_string();
    let what = "PUT /v1/joblib/rooms/r/providers";
    let registered = node.send(what, &node.ben, &[], body).await;
    assert_eq!(registered.status, StatusCode::CREATED, "{registered:?}");
    let mut owner = Provider::join_as(&node, &node.ben, "r:fs:a", registered.id()).await;
    // Of this node, and of another whose hint is lost.
    let read = node.read("a?n=1");
    assert_eq!(owner.asked().await.0, hash_of("n=1"));
    mark(&node, owner.id, hash_of("n=2")).await;
    assert_ne!(node.recheck().await, 0);
    assert_eq!(owner.asked().await.0, hash_of("n=2"));
    before.is_asked_nothing(&node).await;
    read.abort();
}
