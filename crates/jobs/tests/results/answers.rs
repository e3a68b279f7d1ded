//! A stored answer is found until it expires.

use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::AnswerKey,
    results::{Upload, UploadOutcome, chunks::CHUNK_BYTES},
};
use wakeline_testkit::{CommitAlone, eventually};

use crate::{
    backend::{
        LONG, OTHER, PROVIDER, SHORT, TestNode, answer, bytes, found, key, of_version, put, state,
        upload,
    },
    chunks::{Reading, patterned, tag},
};

pub(crate) async fn an_answer_is_found_by_its_own_key_only(node: TestNode) {
    put(&*node, &key("a"), "one", LONG).await;
    assert_eq!(found(&*node, &key("a")).await.unwrap(), b"one");
    let others = [
        key("b"),
        key(""),
        of_version(2, "a"),
        AnswerKey {
            provider: OTHER,
            ..key("a")
        },
    ];
    for other in others {
        let state = state(&*node, &other).await;
        assert!(
            state.answer.is_none() && state.in_flight.is_none(),
            "{other:?}"
        );
    }
}

pub(crate) async fn many_keys_are_answered_in_their_order(node: TestNode) {
    put(&*node, &key("a"), "one", LONG).await;
    put(&*node, &of_version(2, "a"), "two", LONG).await;
    let keys = vec![
        of_version(2, "a"),
        key("missing"),
        key("a"),
        of_version(2, "a"),
    ];
    let looks = node.get(keys).await.unwrap();
    let mut found = Vec::new();
    for state in looks {
        found.push(match &state.answer {
            Some(answer) => Some(bytes(answer).await),
            None => None,
        });
    }
    let (one, two) = (b"one".to_vec(), b"two".to_vec());
    assert_eq!(found, [Some(two.clone()), None, Some(one), Some(two)]);
}

pub(crate) async fn a_read_of_no_keys_finds_no_answers(node: TestNode) {
    assert!(node.get(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn a_later_answer_replaces_an_earlier_one(node: TestNode) {
    put(&*node, &key("a"), "a longer one", LONG).await;
    let first = answer(&*node, &key("a")).await.unwrap();
    put(&*node, &key("a"), "another", LONG).await;
    let second = answer(&*node, &key("a")).await.unwrap();
    assert_eq!(bytes(&second).await, b"another");
    assert_ne!(first.etag, second.etag);
    // A reader of the first answer can still read it.
    assert_eq!(bytes(&first).await, b"a longer one");
}

pub(crate) async fn an_uploaded_problem_is_stored_as_an_error(node: TestNode) {
    let problem = Upload {
        is_error: true,
        ..upload(r#"{"status":400}"#)
    };
    let kept = node
        .put(key("a"), problem, LONG, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::Done);
    let found = answer(&*node, &key("a")).await.unwrap();
    assert!(found.is_error);
    assert_eq!(bytes(&found).await, br#"{"status":400}"#);
    put(&*node, &key("a"), "{}", LONG).await;
    assert!(!answer(&*node, &key("a")).await.unwrap().is_error);
}

pub(crate) async fn an_answer_expires_after_its_time(node: TestNode) {
    put(&*node, &key("stays"), "one", LONG).await;
    put(&*node, &key("goes"), "two", SHORT).await;
    eventually("the end of an answer", async || {
        found(&*node, &key("goes")).await.is_none()
    })
    .await;
    assert!(found(&*node, &key("stays")).await.is_some());
    // A new answer replaces an expired one.
    put(&*node, &key("goes"), "three", LONG).await;
    assert_eq!(found(&*node, &key("goes")).await.unwrap(), b"three");
}

pub(crate) async fn answers_may_have_any_bytes(node: TestNode) {
    let all: Vec<u8> = (0..=255).chain([0, 0, 0xff, 0xc3, 0x28]).collect();
    put(&*node, &key("a"), all.clone(), LONG).await;
    assert_eq!(found(&*node, &key("a")).await.unwrap(), all);
}

pub(crate) async fn an_empty_answer_is_found(node: TestNode) {
    put(&*node, &key("a"), "", LONG).await;
    let found = answer(&*node, &key("a")).await.unwrap();
    assert_eq!(bytes(&found).await, b"");
    assert_eq!(found.etag, "\"e3b0c44298fc1c149afbf4c8996fb924\"");
}

pub(crate) async fn a_large_answer_is_read_unchanged(node: TestNode) {
    let large: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    put(&*node, &key("a"), large.clone(), LONG).await;
    assert!(found(&*node, &key("a")).await.unwrap() == large);
}

pub(crate) async fn answers_around_the_length_of_a_chunk_are_read_unchanged(node: TestNode) {
    for length in [
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        2 * CHUNK_BYTES - 1,
        2 * CHUNK_BYTES,
        7 * CHUNK_BYTES + 1,
    ] {
        let body = patterned(length);
        put(&*node, &key("a"), body.clone(), LONG).await;
        let found = answer(&*node, &key("a")).await.unwrap();
        assert_eq!(found.etag, tag(&body), "{length}");
        assert!(bytes(&found).await == body, "{length}");
    }
}

/// Whether it is replaced by a short or a long answer, or swept.
pub(crate) async fn an_answer_that_is_replaced_or_swept_during_a_read_is_read_whole(
    node: TestNode,
) {
    let large = patterned(40 * CHUNK_BYTES);
    for (at, next) in [None, Some(patterned(10)), Some(patterned(3 * CHUNK_BYTES))]
        .into_iter()
        .enumerate()
    {
        let key = key(&at.to_string());
        put(&*node, &key, large.clone(), LONG).await;
        let mut reading = Reading::begin(answer(&*node, &key).await.unwrap()).await;
        match next {
            Some(next) => put(&*node, &key, next, LONG).await,
            None => node.forget(PROVIDER, None).done().await,
        }
        node.sweep().done().await;
        assert!(reading.end().await == large);
    }
}

pub(crate) async fn the_same_bytes_have_the_same_etag_under_every_key(node: TestNode) {
    put(&*node, &key("a"), "{}", LONG).await;
    put(&*node, &of_version(2, "b"), "{}", LONG).await;
    for key in [key("a"), of_version(2, "b")] {
        let etag = answer(&*node, &key).await.unwrap().etag;
        assert_eq!(etag, "\"44136fa355b3678a1146ad16f7e8649e\"");
    }
}

pub(crate) async fn another_node_finds_the_answer(here: TestNode) {
    let there = here.backend.node().await;
    put(&*here, &key("a"), "one", LONG).await;
    assert_eq!(found(&*there, &key("a")).await.unwrap(), b"one");
    put(&*there, &key("a"), "two", LONG).await;
    assert_eq!(found(&*here, &key("a")).await.unwrap(), b"two");
}
