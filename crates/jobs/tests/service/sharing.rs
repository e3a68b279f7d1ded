//! Identical reads share one provider request, on all nodes.

use futures_util::future::join_all;
use wakeline_testkit::{eventually, soon};

use crate::{
    database::Database,
    node::{Node, OneNode, answered},
    provider::{Provider, hash_of},
};

const MANY: usize = 100;

pub(crate) async fn a_hundred_readers_share_one_provider_request(node: OneNode) {
    let mut provider = node.provider("a").await;
    let reads: Vec<_> = (0..MANY).map(|_| node.read("a?n=1")).collect();
    node.readers_are(MANY).await;
    let (hash, _) = provider.next_request().await;
    provider.answer(&node, &hash, "[1]").await;
    for answer in join_all(reads.into_iter().map(answered)).await {
        assert_eq!(answer.body, "[1]");
    }
    provider.assert_no_request(&node).await;
    node.readers_are(0).await;
    assert_eq!(node.in_flight("a").await, 0);
}

pub(crate) async fn a_hundred_readers_of_two_nodes_share_one_provider_request(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = one.provider("a").await;
    let reads: Vec<_> = (0..MANY)
        .map(|number| [&one, &other][number % 2].read("a?n=1"))
        .collect();
    one.readers_are(MANY / 2).await;
    other.readers_are(MANY / 2).await;
    let (hash, _) = provider.next_request().await;
    // The provider uploads its answer to the other node.
    let what = format!("POST /v1/joblib/providers/{}/results", provider.id);
    let headers = [("x-request-hash", hash.as_str())];
    other.send(&what, &one.anna, &headers, "[1]").await;
    for answer in join_all(reads.into_iter().map(answered)).await {
        assert_eq!(answer.body, "[1]");
    }
    provider.assert_no_request(&one).await;
    assert_eq!(one.in_flight("a").await, 0);
}

pub(crate) async fn a_read_reaches_a_provider_on_another_node(database: Database) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = one.provider("a").await;
    let read = other.read("a?n=1");
    let (hash, _) = provider.next_request().await;
    provider.answer(&one, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
    provider.assert_no_request(&one).await;
}

pub(crate) async fn a_reader_is_answered_when_another_one_hangs_up(node: OneNode) {
    let mut provider = node.provider("a").await;
    let first = node.read("a");
    let (hash, _) = provider.next_request().await;
    let second = node.read("a");
    node.readers_are(2).await;
    // The reader that sent the request hangs up; the request stays for the other reader.
    first.abort();
    node.readers_are(1).await;
    assert_eq!(node.in_flight("a").await, 1);
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(second).await.body, "[1]");
    provider.assert_no_request(&node).await;
}

pub(crate) async fn a_hundred_readers_that_hang_up_leave_no_waiter_and_no_lock(node: OneNode) {
    node.register("a").await;
    let reads: Vec<_> = (0..MANY)
        .map(|number| node.read(&format!("a?n={}", number % 10)))
        .collect();
    // In any state of the read.
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

pub(crate) async fn a_provider_that_joins_late_gets_the_open_requests(node: OneNode) {
    let registered = node.register("a").await;
    let reads = [node.read("a?n=1"), node.read("a?n=2")];
    eventually("both to be asked", async || node.in_flight("a").await == 2).await;
    let mut provider = Provider::join(&node, "a", registered.id()).await;
    let mut asked = [
        provider.next_request().await.0,
        provider.next_request().await.0,
    ];
    asked.sort_unstable();
    let mut expected = [hash_of("n=1"), hash_of("n=2")];
    expected.sort_unstable();
    assert_eq!(asked, expected);
    // A second socket of the provider gets the same requests, and the first one gets none again.
    let mut second = Provider::join(&node, "a", registered.id()).await;
    second.next_request().await;
    second.next_request().await;
    second.assert_no_request(&node).await;
    assert_eq!(
        provider.requests_before_fence().await,
        0,
        "it was asked again"
    );
    for hash in &asked {
        provider.answer(&node, hash, "[1]").await;
    }
    for read in reads {
        assert_eq!(answered(read).await.body, "[1]");
    }
}

pub(crate) async fn a_provider_that_registers_again_gets_the_open_requests_again(node: OneNode) {
    let mut provider = node.provider("a").await;
    provider.answer(&node, &hash_of("n=0"), "old").await;
    let read = node.read("a?n=1");
    let (hash, _) = provider.next_request().await;
    node.register("a").await;
    // The waiting read sends its request to the new registration.
    let (again, _) = provider.next_request().await;
    assert_eq!(again, hash);
    // An answer of the old registration is not served.
    let old = node.read("a?n=0");
    let (asked, _) = provider.next_request().await;
    assert_eq!(asked, hash_of("n=0"));
    provider.answer(&node, &asked, "new").await;
    assert_eq!(answered(old).await.body, "new");
    provider.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
    provider.assert_no_request(&node).await;
}

pub(crate) async fn a_provider_that_was_removed_and_registered_again_answers_the_waiting_reader(
    node: OneNode,
) {
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
    let (hash, _) = second.next_request().await;
    assert_eq!(hash, hash_of("n=1"));
    second.answer(&node, &hash, "[1]").await;
    assert_eq!(answered(read).await.body, "[1]");
}

/// The reader that sent the request hangs up; a reader of the same on another node sends it then.
pub(crate) async fn a_hang_up_leaves_no_reader_on_another_node_without_a_request(
    database: Database,
) {
    let Some([one, other]) = Node::pair(&database).await else {
        return;
    };
    let mut provider = other.provider("a").await;
    let gone = one.read("a");
    let (hash, _) = provider.next_request().await;
    let stays = other.read("a");
    other.readers_are(1).await;
    gone.abort();
    let (again, _) = soon("the question again", provider.next_request()).await;
    assert_eq!(again, hash);
    provider.answer(&other, &hash, "[1]").await;
    assert_eq!(answered(stays).await.body, "[1]");
}
