//! Each category of providers has its result backend.

use std::sync::Arc;

use wakeline_jobs::results::by_category::ResultsByCategory;

use crate::backend::{LONG, TestBackend, found, key, put};

#[tokio::test]
async fn a_category_has_its_own_backend_or_the_default_one() {
    let (store, files) = (
        TestBackend::sqlite().await,
        TestBackend::files_over_sqlite().await,
    );
    let frames = files.node().await;
    let choice = ResultsByCategory {
        default: store.node().await,
        by_category: vec![
            ("frames".to_owned(), frames.clone()),
            ("frames_meta".to_owned(), frames.clone()),
        ],
    };
    put(&**choice.of("frames"), &key("a"), "one", LONG).await;
    assert!(found(&*frames, &key("a")).await.is_some());
    for category in ["filesystem", "Frames", ""] {
        assert!(Arc::ptr_eq(choice.of(category), &choice.default));
    }
    let places = choice.backends();
    assert_eq!(places.len(), 2);
    assert!(Arc::ptr_eq(&places[0], &choice.default));
    assert!(Arc::ptr_eq(&places[1], &frames));
}
