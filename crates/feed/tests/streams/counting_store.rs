//! A store whose calls are counted. A test may hold its pages up after they have been read, or let
//! it fail.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures_util::FutureExt;
use tokio::sync::{Semaphore, watch};
use wakeline_bus::Write;
use wakeline_feed::{
    fact::{Envelope, Kind, Reference},
    query::Query,
    store::{
        Concern, ConcernQuery, Definition, Definitions, DeltaQuery, Facts, GivenTuple, Horizon,
        KeyPair, Keys, Log, Principal, Queries, Removals, SaveOutcome, Seq, Store, StoreFuture,
        StoredDefinition, StoredFact, TupleRow, TuplesQuery,
    },
};

const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(crate) struct CountingStore {
    inner: Arc<dyn Store>,
    calls: AtomicUsize,
    delta_pages: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
    /// Pages from this one on are held up, counted from one.
    held_from: watch::Sender<usize>,
    /// The one page that is delayed; the others are not.
    held: watch::Sender<usize>,
    held_up: Semaphore,
    panics: AtomicBool,
    refuses: AtomicBool,
}

impl CountingStore {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            calls: AtomicUsize::new(0),
            delta_pages: AtomicUsize::new(0),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
            held_from: watch::Sender::new(NONE),
            held: watch::Sender::new(NONE),
            held_up: Semaphore::new(0),
            panics: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
        })
    }

    /// The next reading of the log panics.
    pub(crate) fn panic_once(&self) {
        self.panics.store(true, Ordering::SeqCst);
    }

    /// Look-ups of concerned givens fail from here on, as a statement does that the database cannot
    /// run.
    pub(crate) fn refuse_concerns(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// Reads and writes of all kinds.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn delta_pages(&self) -> usize {
        self.delta_pages.load(Ordering::SeqCst)
    }

    /// The most pages that were read at the same time.
    pub(crate) fn most_under_way(&self) -> usize {
        self.most_under_way.load(Ordering::SeqCst)
    }

    /// All pages after so many more are held up.
    pub(crate) fn hold_up(&self, more: usize) {
        self.held_from.send_replace(self.delta_pages() + 1 + more);
    }

    /// Only the next page is held up.
    pub(crate) fn hold_up_next(&self) {
        self.held.send_replace(self.delta_pages() + 1);
    }

    /// A page has been read, and its caller does not have it yet.
    pub(crate) async fn is_held_up(&self) {
        self.held_up.acquire().await.unwrap().forget();
    }

    /// The page that is held up is returned; the next is held up.
    pub(crate) fn let_one_go(&self) {
        self.hold_up(0);
    }

    pub(crate) fn let_go(&self) {
        self.held_from.send_replace(NONE);
        self.held.send_replace(NONE);
    }

    fn count(&self) -> &dyn Store {
        self.calls.fetch_add(1, Ordering::SeqCst);
        &*self.inner
    }
}

impl Facts for CountingStore {
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<SaveOutcome> {
        self.count().save(envelopes)
    }

    fn find(&self, references: Vec<Reference>) -> StoreFuture<'_, Vec<Option<Seq>>> {
        self.count().find(references)
    }

    fn closure(&self, of: Vec<Seq>) -> StoreFuture<'_, Vec<Seq>> {
        self.count().closure(of)
    }

    fn facts(&self, at: Vec<Seq>) -> StoreFuture<'_, Vec<StoredFact>> {
        self.count().facts(at)
    }

    fn horizon(&self) -> StoreFuture<'_, Horizon> {
        self.count().horizon()
    }

    fn log(&self, after: Seq, limit: usize) -> StoreFuture<'_, Log> {
        let panics = self.panics.swap(false, Ordering::SeqCst);
        assert!(!panics, "this test's panic");
        self.count().log(after, limit)
    }
}

impl Queries for CountingStore {
    fn delta_page(&self, delta: DeltaQuery) -> StoreFuture<'_, Vec<TupleRow>> {
        async move {
            let number = self.delta_pages.fetch_add(1, Ordering::SeqCst) + 1;
            let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
            let rows = self.count().delta_page(delta).await;
            if number >= *self.held_from.borrow() {
                self.held_up.add_permits(1);
                let mut held_from = self.held_from.subscribe();
                held_from.wait_for(|from| number < *from).await.unwrap();
            }
            if number == *self.held.borrow() {
                self.held_up.add_permits(1);
                let mut held = self.held.subscribe();
                held.wait_for(|held| number != *held).await.unwrap();
            }
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            rows
        }
        .boxed()
    }

    fn tuples_of(&self, query: TuplesQuery) -> StoreFuture<'_, Vec<GivenTuple>> {
        self.count().tuples_of(query)
    }

    fn concerns(&self, query: ConcernQuery) -> StoreFuture<'_, Vec<Concern>> {
        if self.refuses.load(Ordering::SeqCst) {
            let refused = wakeline_store::Error::Failed("too much".to_owned());
            return async { Err(refused) }.boxed();
        }
        self.count().concerns(query)
    }

    fn matches(&self, query: Arc<Query>, given: Vec<Vec<Seq>>) -> StoreFuture<'_, Vec<bool>> {
        self.count().matches(query, given)
    }
}

impl Removals for CountingStore {
    fn facts_of_type(&self, kind: Kind, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Seq>> {
        self.count().facts_of_type(kind, after, limit)
    }

    fn purge(&self, root: Seq, keep: Vec<Seq>, limit: usize) -> Write<Vec<Seq>> {
        self.count().purge(root, keep, limit)
    }

    fn fence(&self) -> Write<Seq> {
        self.count().fence()
    }

    fn purge_orphans(&self, of: Vec<Seq>) -> Write<usize> {
        self.count().purge_orphans(of)
    }
}

impl Definitions for CountingStore {
    fn define(&self, definitions: Vec<Definition>) -> Write<()> {
        self.count().define(definitions)
    }

    fn definition(&self, hash: String) -> StoreFuture<'_, Option<StoredDefinition>> {
        self.count().definition(hash)
    }

    fn refresh_definition(&self, hash: String) -> Write<()> {
        self.count().refresh_definition(hash)
    }

    fn forget_definitions(&self, since: i64) -> Write<u64> {
        self.count().forget_definitions(since)
    }
}

impl Keys for CountingStore {
    fn key(&self, of: Principal) -> StoreFuture<'_, Option<KeyPair>> {
        self.count().key(of)
    }

    fn store_key(&self, of: Principal, key: KeyPair) -> Write<KeyPair> {
        self.count().store_key(of, key)
    }
}
