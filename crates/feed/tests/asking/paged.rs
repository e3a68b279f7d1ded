//! Pages of feeds by the facts that they begin with.

use std::sync::Arc;

use wakeline_feed::{
    bookmark::Bookmark,
    fact::Reference,
    paging::{TuplePage, find_givens, fresh_horizon, page_at},
    query::Query,
    store::{Seq, Store},
};

/// The page after a bookmark, up to a settled horizon.
pub(crate) async fn next_page(
    store: &dyn Store,
    query: &Arc<Query>,
    given: &[Reference],
    bookmark: &Bookmark,
    to: Seq,
    limit: usize,
) -> TuplePage {
    match find_givens(store, query, given).await.unwrap() {
        Some(given) => page_at(store, query, &given, bookmark, to, limit)
            .await
            .unwrap(),
        None => TuplePage {
            tuples: Vec::new(),
            reached: bookmark.clone(),
            is_last: true,
        },
    }
}

/// The same up to a horizon of now. A bookmark of another store begins anew.
pub(crate) async fn fresh_page(
    store: &dyn Store,
    query: &Arc<Query>,
    given: &[Reference],
    bookmark: &Bookmark,
    limit: usize,
) -> TuplePage {
    let horizon = fresh_horizon(store).await.unwrap();
    let bookmark = match bookmark {
        beyond if beyond.is_beyond(horizon.last) => &Bookmark::Start,
        bookmark => bookmark,
    };
    next_page(store, query, given, bookmark, horizon.settled, limit).await
}
