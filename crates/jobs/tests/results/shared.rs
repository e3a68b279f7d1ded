//! Two nodes with one directory.

use std::fs;
use wakeline_testkit::CommitAlone;

use crate::backend::{LONG, TestBackend, answer, begin, bytes, found, key, put, state};

const MEGABYTE: usize = 1 << 20;

#[tokio::test]
async fn an_answer_that_another_node_removed_is_not_found() {
    let backend = TestBackend::files_over_sqlite().await;
    let (here, there) = (backend.node().await, backend.node().await);
    put(&*here, &key("a"), "one", LONG).await;
    assert!(found(&*here, &key("a")).await.is_some());
    there.forget(key("a").provider, None).done().await;
    assert!(found(&*here, &key("a")).await.is_none());
    assert!(begin(&*here, &key("a"), LONG).await);
    put(&*here, &key("a"), "two", LONG).await;
    assert_eq!(found(&*there, &key("a")).await.unwrap(), b"two");
}

#[tokio::test]
async fn a_node_over_its_cap_removes_answers_of_other_nodes() {
    let backend = TestBackend::files_over_sqlite().await;
    let here = backend.node().await;
    let there = backend.node_with_cap(2 * MEGABYTE as u64).await;
    put(&*here, &key("a"), vec![7; MEGABYTE], LONG).await;
    let open = answer(&*there, &key("a")).await.unwrap();
    put(&*there, &key("b"), vec![8; MEGABYTE], LONG).await;
    for node in [&*here, &*there] {
        assert!(found(node, &key("a")).await.is_none());
        assert!(found(node, &key("b")).await.is_some());
    }
    assert_eq!(bytes(&open).await.len(), MEGABYTE);
}

#[tokio::test]
async fn a_starting_node_leaves_the_uploads_of_other_nodes_alone() {
    use axum::body::Body;
    use futures_util::{StreamExt, stream};
    use tokio::sync::oneshot;

    let backend = TestBackend::files_over_sqlite().await;
    let here = backend.node().await;
    let (go_on, going_on) = oneshot::channel();
    let half = bytes::Bytes::from(vec![7; MEGABYTE]);
    let rest = half.clone();
    let body = stream::iter([half]).chain(stream::once(async move {
        going_on.await.unwrap();
        rest
    }));
    let body = Body::from_stream(body.map(Ok::<_, std::io::Error>));
    let putting = tokio::spawn({
        let here = here.clone();
        async move { put(&*here, &key("a"), body, LONG).await }
    });
    wakeline_testkit::eventually("a file that is being written", async || {
        fs::read_dir(backend.files()).unwrap().count() == 1
    })
    .await;
    let there = backend.node().await;
    go_on.send(()).unwrap();
    putting.await.unwrap();
    assert_eq!(found(&*there, &key("a")).await.unwrap().len(), 2 * MEGABYTE);
}

/// The configuration has changed: answers kept in the store are served until they expire.
#[tokio::test]
async fn an_answer_stored_before_the_files_backend_was_configured_is_found() {
    let backend = TestBackend::files_over_sqlite().await;
    let TestBackend::Files { locks, .. } = &backend else {
        unreachable!()
    };
    let store = locks.node().await;
    put(&*store, &key("a"), "before", LONG).await;
    let node = backend.node().await;
    assert_eq!(found(&*node, &key("a")).await.unwrap(), b"before");
    assert!(!begin(&*node, &key("a"), LONG).await);
    put(&*node, &key("a"), "after", LONG).await;
    assert_eq!(found(&*node, &key("a")).await.unwrap(), b"after");
    assert!(state(&*store, &key("a")).await.answer.is_some());
}
