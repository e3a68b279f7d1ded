//! Uploads that fail: the answer stored before stays unchanged.

use std::{io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::oneshot;
use wakeline_bus::Wakes;
use wakeline_jobs::results::{Upload, UploadMemory, UploadOutcome};
use wakeline_testkit::{CommitAlone, eventually};

use crate::backend::{LONG, TestNode, begin, found, key, put, state, upload};

type Chunk = Result<Bytes, io::Error>;

fn chunks(count: usize) -> impl futures_util::Stream<Item = Chunk> + Send + 'static {
    stream::iter((0..count).map(|_| Ok(Bytes::from_static(&[b'x'; 1_000]))))
}

/// Tries the upload over the answer under `old` and for the request under `new`.
async fn refused(node: TestNode, make: impl Fn() -> Upload, expected: UploadOutcome) {
    put(&*node, &key("old"), "before", LONG).await;
    assert!(begin(&*node, &key("new"), LONG).await);
    let stored = node.backend.stored().await;
    for hash in ["old", "new"] {
        let kept = node
            .put(key(hash), make(), LONG, Wakes::none())
            .done()
            .await;
        assert_eq!(kept, expected);
    }
    assert_eq!(found(&*node, &key("old")).await.unwrap(), b"before");
    let state = state(&*node, &key("new")).await;
    assert!(state.answer.is_none() && state.in_flight.is_some());
    eventually("nothing left behind", async || {
        node.backend.stored().await == stored
    })
    .await;
}

pub(crate) async fn an_upload_whose_content_length_is_over_the_limit_is_refused(node: TestNode) {
    let make = || Upload {
        limit: 5,
        ..upload("longer")
    };
    refused(node, make, UploadOutcome::TooLarge).await;
}

pub(crate) async fn an_upload_that_grows_over_the_limit_is_refused(node: TestNode) {
    let make = || Upload {
        limit: 999_999,
        ..upload(Body::from_stream(chunks(1_000)))
    };
    refused(node, make, UploadOutcome::TooLarge).await;
}

pub(crate) async fn an_upload_of_exactly_the_limit_is_kept(node: TestNode) {
    let upload = Upload {
        limit: 1_000_000,
        ..upload(Body::from_stream(chunks(1_000)))
    };
    let kept = node.put(key("a"), upload, LONG, Wakes::none()).done().await;
    assert_eq!(kept, UploadOutcome::Done);
    assert!(found(&*node, &key("a")).await.unwrap() == [b'x'; 1_000_000]);
}

pub(crate) async fn an_upload_that_stalls_is_given_up(node: TestNode) {
    let make = || Upload {
        patience: Duration::from_millis(20),
        ..upload(Body::from_stream(chunks(400).chain(stream::pending())))
    };
    refused(node, make, UploadOutcome::TooSlow).await;
}

pub(crate) async fn an_upload_that_breaks_off_is_not_kept(node: TestNode) {
    let make = || {
        let end: Chunk = Err(io::ErrorKind::ConnectionReset.into());
        upload(Body::from_stream(
            chunks(400).chain(stream::once(async { end })),
        ))
    };
    refused(node, make, UploadOutcome::BrokenOff).await;
}

/// However long the upload is or may become, and however slowly it comes.
pub(crate) async fn an_upload_in_progress_leaves_memory_to_others(node: TestNode) {
    let memory = UploadMemory::new(1 << 20);
    let (cut, is_cut) = oneshot::channel::<()>();
    let end = async {
        is_cut.await.unwrap();
        Chunk::Err(io::ErrorKind::ConnectionReset.into())
    };
    let slow = Upload {
        memory: memory.clone(),
        ..upload(Body::from_stream(chunks(3_000).chain(stream::once(end))))
    };
    let before = node.backend.stored().await;
    let coming = node.put(key("slow"), slow, LONG, Wakes::none());
    let mut coming = Box::pin(coming.commit_alone());
    eventually("some of it to be stored", async || {
        node.backend.stored().await > before
    })
    .await;
    let quick = Upload {
        memory: memory.clone(),
        patience: Duration::from_secs(5),
        ..upload(vec![b'y'; 400_000])
    };
    let kept = node
        .put(key("quick"), quick, LONG, Wakes::none())
        .commit_alone()
        .await;
    assert_eq!(kept.unwrap(), UploadOutcome::Done);
    assert_eq!(found(&*node, &key("quick")).await.unwrap().len(), 400_000);
    assert!((&mut coming).now_or_never().is_none());
    cut.send(()).unwrap();
    assert_eq!(coming.await.unwrap(), UploadOutcome::BrokenOff);
    assert_eq!(memory.free(), 1 << 20);
}

pub(crate) async fn an_upload_whose_caller_has_gone_is_completed(node: TestNode) {
    let (read, reading) = oneshot::channel();
    let (more, waiting) = oneshot::channel::<()>();
    let pause = stream::once(async {
        let _ = read.send(());
        waiting.await.unwrap();
        Chunk::Ok(Bytes::from_static(b"end"))
    });
    let body = Body::from_stream(chunks(400).chain(pause));
    let put = node.put(key("a"), upload(body), LONG, Wakes::none());
    let mut putting = Box::pin(put.commit_alone());
    tokio::select! {
        kept = &mut putting => panic!("{kept:?}"),
        all_read = reading => all_read.unwrap(),
    }
    drop(putting);
    more.send(()).unwrap();
    eventually("all of it to be kept", async || {
        found(&*node, &key("a")).await.map(|body| body.len()) == Some(400_003)
    })
    .await;
}
