//! Answers as the store keeps them. A test may hold a look up after it has been had.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wakeline_jobs::{
    provider::{Key, Request},
    results::{Kept, Look, Results, Upload},
    store::Step,
};

#[derive(Debug)]
pub(crate) struct Gated {
    inner: Arc<dyn Results>,
    pub(crate) looks: AtomicUsize,
    /// Which look is held up, counted from one.
    held_up: AtomicUsize,
    had: Semaphore,
    gate: Semaphore,
}

impl Gated {
    pub(crate) fn new(inner: Arc<dyn Results>) -> Self {
        Self {
            inner,
            looks: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
            had: Semaphore::new(0),
            gate: Semaphore::new(0),
        }
    }

    /// The look after so many more is held up.
    pub(crate) fn hold_up(&self, after: usize) {
        let next = self.looks.load(Ordering::SeqCst) + 1;
        self.held_up.store(next + after, Ordering::SeqCst);
    }

    /// What it found is known, and nobody has heard it.
    pub(crate) async fn is_held_up(&self) {
        self.had.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1);
    }
}

impl Results for Gated {
    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        async move {
            let seen = self.inner.look(keys).await;
            let number = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
            if number == self.held_up.load(Ordering::SeqCst) {
                self.had.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
            }
            seen
        }
        .boxed()
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration) -> Step<'_, Kept> {
        self.inner.put(key, upload, ttl)
    }

    fn begin(&self, request: Request, ttl: Duration) -> Step<'_, bool> {
        self.inner.begin(request, ttl)
    }

    fn end(&self, key: Key, token: Option<Uuid>) -> Step<'_, ()> {
        self.inner.end(key, token)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        self.inner.in_flight(provider, version)
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Step<'_, ()> {
        self.inner.forget(provider, version)
    }

    fn sweep(&self) -> Step<'_, Option<Duration>> {
        self.inner.sweep()
    }
}
