//! Pages of feeds: streams that need the same page share one read.

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
    store::{Seq, Store},
};

/// Pages that are kept for streams that come a moment later. A page's key has the horizon, so it is
/// used only while nothing has been saved since.
const MAX_CACHED: usize = 64;

type PageFuture = Shared<BoxFuture<'static, Result<Arc<Page>, Error>>>;
type PageKey = (Arc<str>, String, Seq);

/// A part of a feed, as it is sent.
#[derive(Debug)]
pub struct Page {
    /// Each once, in the order of their first tuples.
    pub references: Vec<Reference>,
    pub tuples: usize,
    /// Where the next page begins.
    pub reached: Bookmark,
    /// There is nothing more up to the horizon of the request.
    pub is_last: bool,
}

pub struct Pages {
    store: Arc<dyn Store>,
    size: usize,
    cache: Mutex<PageCache>,
    in_flight: Arc<AtomicUsize>,
}

#[derive(Default)]
struct PageCache {
    pages: HashMap<PageKey, PageFuture>,
    order: VecDeque<PageKey>,
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
            cache: Mutex::default(),
            in_flight: Arc::default(),
        }
    }

    /// Tuples of a page at most.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether a page is being read.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// The page after `at`, up to `to`, which is settled. `given`: the seqs of the feed's givens.
    pub async fn page(
        &self,
        feed: &Arc<Feed>,
        given: &[Seq],
        at: &Bookmark,
        to: Seq,
    ) -> Result<Arc<Page>, Error> {
        let key = (feed.hash.clone(), at.to_string(), to);
        let asked = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            let known = cache.pages.get(&key).filter(|page| !has_failed(page));
            if let Some(page) = known {
                page.clone()
            } else {
                let page = self.start(feed, given, at, to);
                cache.keep(key, page.clone());
                page
            }
        };
        asked.await
    }

    fn start(&self, feed: &Arc<Feed>, given: &[Seq], at: &Bookmark, to: Seq) -> PageFuture {
        let (store, query, size) = (self.store.clone(), feed.query.clone(), self.size);
        let (given, at) = (given.to_vec(), at.clone());
        let in_flight = InFlightPage::new(&self.in_flight);
        // A task of its own: the first stream may be dropped while others wait for the page.
        let asked = tokio::spawn(async move {
            let _under_way = in_flight;
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

struct InFlightPage(Arc<AtomicUsize>);

impl InFlightPage {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for InFlightPage {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PageCache {
    fn keep(&mut self, key: PageKey, page: PageFuture) {
        if self.pages.insert(key.clone(), page).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_CACHED
            && let Some(oldest) = self.order.pop_front()
        {
            self.pages.remove(&oldest);
        }
    }
}

fn has_failed(page: &PageFuture) -> bool {
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
