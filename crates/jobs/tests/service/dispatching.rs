//! Which sockets of a provider get which requests.

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

async fn until_listening(node: &Node, count: usize) {
    eventually("the providers to listen", async || {
        node.waiting(|wait| matches!(wait, Wait::Requests(_))) == count
    })
    .await;
}

/// Begins a request as another node would, whose wake is lost.
async fn begin_without_hint(node: &Node, provider: Uuid, hash: String) {
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

pub(crate) async fn idle_providers_cost_no_reads_of_the_store(node: OneNode) {
    let mut socket = Poller::open(node.address).await.unwrap();
    socket.connect(&node.anna).await.unwrap();
    let mut last = Uuid::nil();
    for number in 0..MANY {
        last = node.register(&number.to_string()).await.id();
        let join = format!(r#"42["join_provider_room",{{"provider_name":"r:fs:{number}"}}]"#);
        socket.say(&join).await.unwrap();
    }
    until_listening(&node, MANY).await;
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
    begin_without_hint(&node, last, hash_of("n=1")).await;
    assert_eq!(node.recheck().await, 1);
    assert_eq!(hear(&mut socket).await, hash_of("n=1"));
}

/// The hash of the next request.
async fn hear(socket: &mut Poller) -> String {
    let packet = soon("a question", socket.hear()).await.unwrap();
    let event: Value = serde_json::from_str(packet.strip_prefix("42").unwrap()).unwrap();
    assert_eq!(event[0], "provider_request", "{packet}");
    event[1]["request_id"].as_str().unwrap().to_owned()
}

pub(crate) async fn a_new_provider_socket_gets_the_open_requests_when_the_store_is_back(
    node: OneNode,
) {
    let mut first = node.provider("a").await;
    let read = node.read("a");
    let (hash, _) = first.next_request().await;
    node.results.fail("in_flight");
    let mut second = Provider::join(&node, "a", first.id).await;
    assert_eq!(soon("the question", second.next_request()).await.0, hash);
    assert!(node.results.has_failed("in_flight"));
    second.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn a_provider_that_rejoins_gets_each_request_once(node: OneNode) {
    let beside = node.provider("a").await;
    let mut provider = Provider::join(&node, "a", beside.id).await;
    let first = node.read("a?n=1");
    // The first request shows that the provider has joined.
    let (hash, _) = provider.next_request().await;
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(first).await.body, "[1]");
    provider.say(&node, "leave", -1).await;
    provider.say(&node, "join", 1).await;
    let read = node.read("a?n=2");
    let (hash, _) = provider.next_request().await;
    assert_eq!(hash, hash_of("n=2"));
    provider.assert_no_request(&node).await;
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

pub(crate) async fn requests_go_to_the_new_owner_of_a_provider(node: OneNode) {
    let mut before = node.provider("a").await;
    let what = format!("DELETE /v1/joblib/providers/{}", before.id);
    let gone = node.send(&what, &node.anna, &[], "").await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    let body = json!({ "category": "fs", "name": "a" }).to_string();
    let what = "PUT /v1/joblib/rooms/r/providers";
    let registered = node.send(what, &node.ben, &[], body).await;
    assert_eq!(registered.status, StatusCode::CREATED, "{registered:?}");
    let mut owner = Provider::join_as(&node, &node.ben, "r:fs:a", registered.id()).await;
    // A request of this node, and one of another node whose wake is lost.
    let read = node.read("a?n=1");
    assert_eq!(owner.next_request().await.0, hash_of("n=1"));
    begin_without_hint(&node, owner.id, hash_of("n=2")).await;
    assert_ne!(node.recheck().await, 0);
    assert_eq!(owner.next_request().await.0, hash_of("n=2"));
    before.assert_no_request(&node).await;
    read.abort();
}
