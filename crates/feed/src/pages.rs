//! Pages of feeds: streams that are at the same place share the question and the answer.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use wakeline_store::Error;

use crate::{
    bookmark::Bookmark,
    fact::Reference,
    feed::Feed,
    paging,
    store::{Position, Store},
};

/// Pages that are kept for those who come a moment later. One is used only while nothing has been
/// saved since: what it is asked for has the horizon in it.
const KEPT: usize = 64;

type Asked = Shared<BoxFuture<'static, Result<Arc<Page>, Error>>>;
type Key = (Arc<str>, String, Position);

/// A part of a feed, as it is sent.
#[derive(Debug)]
pub struct Page {
    /// Each once, in the order of their first tuples.
    pub references: Vec<Reference>,
    pub tuples: usize,
    /// Where the next one begins.
    pub reached: Bookmark,
    /// Nothing more comes up to the horizon that was asked for.
    pub is_last: bool,
}

pub struct Pages {
    store: Arc<dyn Store>,
    size: usize,
    asked: Mutex<Kept>,
    under_way: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Kept {
    pages: HashMap<Key, Asked>,
    order: VecDeque<Key>,
}

impl fmt::Debug for Pages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pages").finish_non_exhaustive()
    }
}

impl Pages {
    /// `size`: tuples of a page at most.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, size: usize) -> Self {
        Self {
            store,
            size,
            asked: Mutex::default(),
            under_way: Arc::default(),
        }
    }

    /// Tuples of a page at most.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether somebody waits for a page.
    #[must_use]
    pub fn are_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// What comes after `at`, up to `to`, which is settled. `given` is where the feed's givens are.
    pub async fn page(
        &self,
        feed: &Arc<Feed>,
        given: &[Position],
        at: &Bookmark,
        to: Position,
    ) -> Result<Arc<Page>, Error> {
        let key = (feed.hash.clone(), at.to_string(), to);
        let asked = {
            let mut kept = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let known = kept.pages.get(&key).filter(|page| !has_failed(page));
            if let Some(page) = known {
                page.clone()
            } else {
                let page = self.ask(feed, given, at, to);
                kept.keep(key, page.clone());
                page
            }
        };
        asked.await
    }

    fn ask(&self, feed: &Arc<Feed>, given: &[Position], at: &Bookmark, to: Position) -> Asked {
        let (store, query, size) = (self.store.clone(), feed.query.clone(), self.size);
        let (given, at) = (given.to_vec(), at.clone());
        let under_way = UnderWay::new(&self.under_way);
        // A task of its own: the stream that asks first may go away, and others wait for it too.
        let asked = tokio::spawn(async move {
            let _under_way = under_way;
            let page = paging::page_at(&*store, &query, &given, &at, to, size).await?;
            Ok(Arc::new(Page {
                references: once_each(&page.tuples),
                tuples: page.tuples.len(),
                reached: page.reached,
                is_last: page.is_last,
            }))
        });
        async move {
            let panicked = |_| Err(Error::Failed("a page: a panic".to_owned()));
            asked.await.unwrap_or_else(panicked)
        }
        .boxed()
        .shared()
    }
}

struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Kept {
    fn keep(&mut self, key: Key, page: Asked) {
        if self.pages.insert(key.clone(), page).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.pages.remove(&oldest);
        }
    }
}

fn has_failed(page: &Asked) -> bool {
    page.peek().is_some_and(Result::is_err)
}

fn once_each(tuples: &[Vec<Reference>]) -> Vec<Reference> {
    let mut seen = std::collections::HashSet::new();
    tuples
        .iter()
        .flatten()
        .filter(|reference| seen.insert(*reference))
        .cloned()
        .collect()
}
