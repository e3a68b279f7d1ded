//! Answers and locks that are not needed any more are deleted.

use std::time::Duration;

use wakeline_jobs::{provider::AnswerKey, results::ResultBackend};
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{
    LONG, OTHER, PROVIDER, SHORT, TestBackend, TestNode, begin, found, key, of_version, put, state,
};

fn of_other(hash: &str) -> AnswerKey {
    AnswerKey {
        provider: OTHER,
        ..key(hash)
    }
}

async fn fill(backend: &dyn ResultBackend) {
    for key in [
        key("a"),
        of_version(2, "a"),
        of_version(10, "a"),
        of_other("a"),
    ] {
        put(backend, &key, "one", LONG).await;
        let asked = AnswerKey {
            hash: "b".to_owned(),
            ..key
        };
        assert!(begin(backend, &asked, LONG).await);
    }
}

/// Whether the answer and the lock exist; fails if only one of them does.
async fn has(backend: &dyn ResultBackend, key: AnswerKey) -> bool {
    let asked = AnswerKey {
        hash: "b".to_owned(),
        ..key.clone()
    };
    let in_flight = backend.in_flight(key.provider, key.version).await.unwrap();
    let mark = state(backend, &asked).await.in_flight.is_some();
    assert_eq!(mark, !in_flight.is_empty());
    let answer = found(backend, &key).await.is_some();
    assert_eq!(mark, answer);
    answer
}

pub(crate) async fn the_answers_of_earlier_registrations_are_forgotten(here: TestNode) {
    let there = here.backend.node().await;
    fill(&*here).await;
    // Forgotten by another node than the one that stored them.
    there.forget(PROVIDER, Some(10)).done().await;
    for node in [&*here, &*there] {
        assert!(!has(node, key("a")).await);
        assert!(!has(node, of_version(2, "a")).await);
        assert!(has(node, of_version(10, "a")).await);
        assert!(has(node, of_other("a")).await);
    }
    here.forget(PROVIDER, Some(10)).done().await;
    assert!(has(&*here, of_version(10, "a")).await);
}

pub(crate) async fn the_answers_of_a_removed_provider_are_forgotten(node: TestNode) {
    fill(&*node).await;
    node.forget(PROVIDER, None).done().await;
    for version in [1, 2, 10] {
        assert!(!has(&*node, of_version(version, "a")).await);
    }
    assert!(has(&*node, of_other("a")).await);
    node.forget(OTHER, None).done().await;
    assert_eq!(node.backend.stored().await, 0);
}

pub(crate) async fn more_locks_than_one_statement_deletes_are_forgotten(node: TestNode) {
    let marks = (0..1_200).map(|at| {
        let node = node.node.clone();
        async move {
            let key = of_version(1 + at % 3, &at.to_string());
            begin(&*node, &key, LONG).await
        }
    });
    let marked = futures_util::future::join_all(marks).await;
    assert!(marked.into_iter().all(|begun| begun));
    node.forget(PROVIDER, Some(3)).done().await;
    let left = node.in_flight(PROVIDER, 3).await.unwrap();
    assert_eq!(left.len(), 400);
    node.forget(PROVIDER, None).done().await;
    assert_eq!(node.backend.stored().await, 0);
}

pub(crate) async fn expired_answers_and_locks_are_swept(node: TestNode) {
    // More than one statement deletes.
    for at in 0..130 {
        let hash = at.to_string();
        if at % 4 == 0 {
            put(&*node, &key(&hash), "one", SHORT).await;
        } else {
            assert!(begin(&*node, &key(&hash), SHORT).await);
        }
    }
    eventually("an empty place", async || {
        node.sweep().done().await;
        node.backend.stored().await == 0
    })
    .await;
    assert_eq!(node.sweep().done().await, None);
}

/// Redis needs no sweep.
pub(crate) async fn a_sweep_returns_when_the_next_one_is_due(node: TestNode) {
    assert_eq!(node.sweep().done().await, None);
    let is_swept = !matches!(node.backend, TestBackend::Redis { .. });
    put(&*node, &key("a"), "one", LONG).await;
    let first = node.sweep().done().await;
    assert!(begin(&*node, &key("b"), LONG / 2).await);
    let second = node.sweep().done().await;
    for (next, latest) in [(first, LONG), (second, LONG / 2)] {
        assert_eq!(next.is_some(), is_swept);
        assert!(next.is_none_or(|next| next > Duration::ZERO && next <= latest));
    }
    assert!(found(&*node, &key("a")).await.is_some());
    assert!(state(&*node, &key("b")).await.in_flight.is_some());
}
