//! One question, however many ask it, and wherever.

use futures_util::future::join_all;
use wakeline_testkit::{eventually, soon};

use crate::{
    database::Database,
    node::{Node, OneNode, answered},
    provider::{Provider, hash_of},
};

const MANY: usize = 100;

pub(crate) async fn a_hundred_readers_are_one_question(node: OneNode) {
    let mut provider = node.provider("a").await;
    let reads: Vec<_> = (0..MANY).map(|_| node.read("a?n=1")).collect();
    node.readers_are(MANY).await;
    let (hash, _) = provider.asked().await;
    provider.answer(&node, &hash, "[1]").await;
    for answer in join_all(reads.into_iter().map(answered)).await {
        assert_eq!(answer.body, "[1]");
    }
    provider.is_asked_nothing(&node).await;
    node.readers_are(0).await;
    assert_eq!(node.in_flight("a").await, 0);
}

pub(crate) async fn a_hundred_readers_of_two_nodes_are_one_question(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = one.provider("a").await;
    let reads: Vec<_> = (0..MANY)
        .map(|number| [&one, &other][number % 2].read("a?n=1"))
        .collect();
    one.readers_are(MANY / 2).await;
    other.readers_are(MANY / 2).await;
    let (hash, _) = provider.asked().await;
    // Its answer comes in at the other node.
    let what = format!("POST /v1/joblib/providers/{}/results", provider.id);
    let headers = [("x-request-hash", hash.as_str())];
    other.send(&what, &one.anna, &headers, "[1]").await;
    for answer in join_all(reads.into_iter().map(answered)).await {
        assert_eq!(answer.body, "[1]");
    }
    provider.is_asked_nothing(&one).await;
    assert_eq!(one.in_flight("a").await, 0);
}

pub(crate) async fn a_provider_on_another_node_is_asked(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = one.provider("a").await;
    let read = other.read("a?n=1");
    let (hash, _) = provider.asked().await;
    provider.answer(&one, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
    provider.is_asked_nothing(&one).await;
}

pub(crate) async fn who_stays_is_answered_when_others_hang_up(node: OneNode) {
    let mut provider = node.provider("a").await;
    let first = node.read("a");
    let (hash, _) = provider.asked().await;
    let second = node.read("a");
    node.readers_are(2).await;
    // The one that has asked goes; its question stays, for somebody wants to know.
    first.abort();
    node.readers_are(1).await;
    assert_eq!(node.in_flight("a").await, 1);
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(second).await.body, "[1]");
    provider.is_asked_nothing(&node).await;
}

pub(crate) async fn a_hundred_that_hang_up_leave_nothing(node: OneNode) {
    node.register("a").await;
    let reads: Vec<_> = (0..MANY)
        .map(|number| node.read(&format!("a?n={}", number % 10)))
        .collect();
    // At any moment of their lives.
    for read in &reads[..MANY / 2] {
        read.abort();
    }
    node.readers_are(MANY / 2).await;
    eventually("all to be asked", async || node.in_flight("a").await == 10).await;
    for read in &reads {
        read.abort();
    }
    eventually("nobody to wait", async || node.engine.held() == 0).await;
    eventually("no mark to be left", async || {
        node.in_flight("a").await == 0
    })
    .await;
    assert_eq!(node.engine.topic_count(), 0);
}

pub(crate) async fn a_provider_that_comes_late_is_sent_what_is_asked(node: OneNode) {
    let registered = node.register("a").await;
    let reads = [node.read("a?n=1"), node.read("a?n=2")];
    eventually("both to be asked", async || node.in_flight("a").await == 2).await;
    let mut provider = Provider::join(&node, "a", registered.id()).await;
    let mut asked = [provider.asked().await.0, provider.asked().await.0];
    asked.sort_unstable();
    let mut expected = [hash_of("n=1"), hash_of("n=2")];
    expected.sort_unstable();
    assert_eq!(asked, expected);
    // A second socket of it is sent the same, and the first nothing again.
    let mut second = Provider::join(&node, "a", registered.id()).await;
    second.asked().await;
    second.asked().await;
    second.is_asked_nothing(&node).await;
    assert_eq!(provider.fence().await, 0, "it was asked again");
    for hash in &asked {
        provider.answer(&node, hash, "[1]").await;
    }
    for read in reads {
        assert_eq!(answered(read).await.body, "[1]");
    }
}

pub(crate) async fn registered_anew_it_is_asked_anew(node: OneNode) {
    let mut provider = node.provider("a").await;
    provider.answer(&node, &hash_of("n=0"), "old").await;
    let read = node.read("a?n=1");
    let (hash, _) = provider.asked().await;
    node.register("a").await;
    // Whoever waits asks the new one.
    let (again, _) = provider.asked().await;
    assert_eq!(again, hash);
    // What the old one answered is not served.
    let old = node.read("a?n=0");
    let (asked, _) = provider.asked().await;
    assert_eq!(asked, hash_of("n=0"));
    provider.answer(&node, &asked, "new").await;
    assert_eq!(answered(old).await.body, "new");
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
    provider.is_asked_nothing(&node).await;
}

pub(crate) async fn a_provider_that_went_and_came_answers_who_waited(node: OneNode) {
    let first = node.provider("a").await;
    first.answer(&node, &hash_of("n=0"), "old").await;
    let read = node.read("a?n=1");
    node.readers_are(1).await;
    let what = format!("DELETE /v1/joblib/providers/{}", first.id);
    let gone = node.send(&what, &node.anna, &[], "").await;
    assert_eq!(gone.status, 204);
    assert_eq!(answered(node.read("a?n=0")).await.status, 404);
    let registered = node.register("a").await;
    assert_ne!(registered.id(), first.id);
    let mut second = Provider::join(&node, "a", registered.id()).await;
    let (hash, _) = second.asked().await;
    assert_eq!(hash, hash_of("n=1"));
    second.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

/// The one that has asked hangs up; who waits for the same on another node asks then.
pub(crate) async fn who_hangs_up_strands_nobody_elsewhere(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = other.provider("a").await;
    let gone = one.read("a");
    let (hash, _) = provider.asked().await;
    let stays = other.read("a");
    other.readers_are(1).await;
    gone.abort();
    let (again, _) = soon("the question again", provider.asked()).await;
    assert_eq!(again, hash);
    provider.answer(&other, &hash, "[1]").await;
    assert_eq!(answered(stays).await.body, "[1]");
}
