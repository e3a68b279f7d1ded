//! Answers that are too long for one value and are kept in chunks: in the databases and in Redis.

use std::{fs, pin::Pin, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::{Answer, AnswerBody},
    results::{
        Upload, UploadOutcome,
        chunks::{CHUNK_BYTES, CHUNK_GRACE},
    },
};
use wakeline_store::Error;
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{
    LIMIT, LONG, PROVIDER, SHORT, TestBackend, TestNode, answer, begin, bytes, found, key, put,
    state, upload,
};

/// A number of chunks: more than one statement deletes, and within the limit of an answer.
const MANY: usize = 60;

/// Bytes of which no two chunks are the same.
pub(crate) fn patterned(length: usize) -> Vec<u8> {
    let words = (0_u32..).flat_map(u32::to_le_bytes);
    words.take(length).collect()
}

pub(crate) fn tag(body: &[u8]) -> String {
    let sum = Sha256::digest(body);
    let half: String = sum[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{half}\"")
}

/// An answer of which a reader has read the beginning.
pub(crate) enum Reading {
    ReadStart(
        Vec<u8>,
        Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>,
    ),
    /// Open in a file, or in memory.
    Had(Answer),
}

impl Reading {
    pub(crate) async fn begin(answer: Answer) -> Self {
        let AnswerBody::Chunks(chunked) = answer.body else {
            return Self::Had(answer);
        };
        let mut chunks = Box::pin(chunked.open().await.unwrap());
        let first = chunks.next().await.unwrap().unwrap();
        assert_eq!(first.len(), CHUNK_BYTES);
        Self::ReadStart(first.to_vec(), chunks)
    }

    pub(crate) async fn end(&mut self) -> Vec<u8> {
        match self {
            Self::Had(answer) => bytes(answer).await,
            Self::ReadStart(read, rest) => {
                while let Some(chunk) = rest.try_next().await.unwrap() {
                    read.extend_from_slice(&chunk);
                }
                std::mem::take(read)
            }
        }
    }
}

/// The peak memory of this process, in bytes.
pub(crate) fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = peak.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() * 1_024
}

pub(crate) async fn a_large_answer_is_never_in_memory_as_a_whole(node: TestNode) {
    const CHUNKS: usize = 96 * 16;
    const CHUNK: usize = 1 << 16;
    put(&*node, &key("small"), patterned(2 * CHUNK_BYTES), LONG).await;
    assert!(found(&*node, &key("small")).await.is_some());
    let before = memory();
    let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![7; CHUNK]));
    let chunks = stream::iter((0..CHUNKS).map(move |_| chunk()));
    let large = Upload {
        limit: 20 * LIMIT,
        ..upload(Body::from_stream(chunks))
    };
    let kept = node
        .put(key("large"), large, LONG, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::Done);
    let AnswerBody::Chunks(chunked) = answer(&*node, &key("large")).await.unwrap().body else {
        panic!("not in pieces");
    };
    assert_eq!(chunked.length(), (CHUNKS * CHUNK) as u64);
    let mut read = 0;
    let mut chunks = Box::pin(chunked.open().await.unwrap());
    while let Some(chunk) = chunks.try_next().await.unwrap() {
        assert!(chunk.len() <= CHUNK_BYTES && chunk.iter().all(|byte| *byte == 7));
        read += chunk.len();
    }
    assert_eq!(read, CHUNKS * CHUNK);
    let grown = memory().saturating_sub(before);
    assert!(grown < CHUNKS * CHUNK / 4, "{grown} bytes");
}

/// The reader gets an error, so that the part does not look like the whole.
pub(crate) async fn an_answer_that_has_lost_a_chunk_breaks_off(node: TestNode) {
    put(&*node, &key("a"), patterned(3 * CHUNK_BYTES), LONG).await;
    let found = answer(&*node, &key("a")).await.unwrap();
    node.backend.lose_a_chunk(2).await;
    let AnswerBody::Chunks(chunked) = found.body else {
        panic!("not in pieces");
    };
    let mut chunks = Box::pin(chunked.open().await.unwrap());
    for _ in 0..2 {
        assert_eq!(chunks.try_next().await.unwrap().unwrap().len(), CHUNK_BYTES);
    }
    assert!(chunks.try_next().await.is_err());
}

/// The databases sweep the chunks; Redis expires them by itself.
pub(crate) async fn chunks_expire_some_time_after_their_answer(node: TestNode) {
    put(&*node, &key("a"), patterned(MANY * CHUNK_BYTES), SHORT).await;
    eventually("the end of the answer", async || {
        state(&*node, &key("a")).await.answer.is_none()
    })
    .await;
    let next = node.sweep().done().await;
    let left = node.backend.uploads_end().await.unwrap();
    assert!(left > CHUNK_GRACE / 2 && left <= CHUNK_GRACE, "{left:?}");
    if !matches!(node.backend, TestBackend::Redis { .. }) {
        assert_eq!(
            node.backend.stored().await,
            MANY + 1,
            "the answer itself is gone"
        );
        let next = next.unwrap();
        assert!(next > CHUNK_GRACE / 2 && next <= CHUNK_GRACE, "{next:?}");
    }
    node.backend.uploads_end_in(Duration::ZERO).await;
    let mut slices = 0;
    while node.sweep().done().await == Some(Duration::ZERO) {
        slices += 1;
        assert!(node.backend.stored().await < MANY);
    }
    if !matches!(node.backend, TestBackend::Redis { .. }) {
        assert_eq!(slices, 1);
        assert_eq!(node.backend.stored().await, 0);
    }
    assert_eq!(node.backend.uploads_end().await, None);
}

pub(crate) async fn chunks_of_a_replaced_or_forgotten_answer_stay_for_its_readers_for_a_time(
    node: TestNode,
) {
    let long = 10 * CHUNK_GRACE;
    let is_near = async || {
        let left = node.backend.uploads_end().await.unwrap();
        left <= CHUNK_GRACE
    };
    for next in [Some("short"), None] {
        put(&*node, &key("a"), patterned(2 * CHUNK_BYTES), long).await;
        assert!(!is_near().await);
        match next {
            Some(next) => put(&*node, &key("a"), next, LONG).await,
            None => node.forget(PROVIDER, None).done().await,
        }
        assert!(is_near().await);
    }
    // A chunked answer is replaced by another one.
    for _ in 0..2 {
        put(&*node, &key("a"), patterned(2 * CHUNK_BYTES), long).await;
    }
    assert!(!is_near().await, "the later one stays");
    put(&*node, &key("a"), "short", LONG).await;
    assert!(is_near().await, "the earlier one goes too");
}

pub(crate) async fn reading_a_chunk_extends_the_life_of_the_rest(node: TestNode) {
    let large = patterned(3 * CHUNK_BYTES);
    put(&*node, &key("a"), large.clone(), LONG).await;
    let mut reading = Reading::begin(answer(&*node, &key("a")).await.unwrap()).await;
    node.forget(PROVIDER, None).done().await;
    node.backend.uploads_end_in(CHUNK_GRACE / 4).await;
    assert!(reading.end().await == large);
    let left = node.backend.uploads_end().await.unwrap();
    assert!(left > CHUNK_GRACE / 2, "{left:?}");
}

/// The uploader gets the outcome, and nothing is left of the upload.
pub(crate) async fn an_upload_swept_before_its_end_is_not_kept(node: TestNode) {
    assert!(begin(&*node, &key("a"), LONG).await);
    let before = node.backend.stored().await;
    for rest in [1, CHUNK_BYTES] {
        let (go_on, going_on) = oneshot::channel();
        let last = stream::once(async move {
            going_on.await.unwrap();
            Bytes::from(vec![0; rest])
        });
        let chunks = stream::iter([Bytes::from(patterned(2 * CHUNK_BYTES))]).chain(last);
        let body = Body::from_stream(chunks.map(Ok::<_, std::io::Error>));
        let putting = tokio::spawn({
            let node = node.node.clone();
            async move {
                node.put(key("a"), upload(body), LONG, Wakes::none())
                    .commit_alone()
                    .await
            }
        });
        // The second chunk may be the last one until more bytes follow.
        eventually("the first piece", async || {
            node.backend.stored().await > before
        })
        .await;
        node.backend.uploads_end_in(Duration::ZERO).await;
        node.sweep().done().await;
        go_on.send(()).unwrap();
        assert_eq!(putting.await.unwrap().unwrap(), UploadOutcome::TooSlow);
        eventually("nothing left", async || {
            node.backend.stored().await == before
        })
        .await;
        let state = state(&*node, &key("a")).await;
        assert!(state.answer.is_none() && state.in_flight.is_some());
    }
}

pub(crate) async fn a_broken_upload_of_many_chunks_leaves_nothing(node: TestNode) {
    put(&*node, &key("a"), "before", LONG).await;
    let before = node.backend.stored().await;
    let chunk = Bytes::from(patterned(CHUNK_BYTES));
    let chunks = stream::iter((0..MANY).map(move |_| Ok::<_, std::io::Error>(chunk.clone())));
    let end = stream::once(async { Err(std::io::ErrorKind::ConnectionReset.into()) });
    let upload = Upload {
        limit: 20 * LIMIT,
        ..upload(Body::from_stream(chunks.chain(end)))
    };
    let kept = node.put(key("a"), upload, LONG, Wakes::none()).done().await;
    assert_eq!(kept, UploadOutcome::BrokenOff);
    assert_eq!(found(&*node, &key("a")).await.unwrap(), b"before");
    // The rest is removed by the write itself, for which the shutdown waits.
    assert_eq!(node.backend.stored().await, before);
}

/// Redis is a cache that may evict any key.
#[tokio::test]
async fn an_answer_whose_chunks_redis_has_evicted_is_not_found() {
    let backend = TestBackend::redis().await;
    let node = backend.node().await;
    put(&*node, &key("a"), patterned(2 * CHUNK_BYTES), LONG).await;
    assert!(!begin(&*node, &key("a"), LONG).await);
    backend.uploads_end_in(Duration::ZERO).await;
    assert!(state(&*node, &key("a")).await.answer.is_none());
    assert!(begin(&*node, &key("a"), LONG).await, "it is asked again");
    put(&*node, &key("a"), patterned(2 * CHUNK_BYTES), LONG).await;
    assert!(found(&*node, &key("a")).await.is_some());
}
