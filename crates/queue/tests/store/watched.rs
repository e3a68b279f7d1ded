//! A store that is watched: everything but its pops goes through as it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;
use wakeline_bus::{DueWake, Write};
use wakeline_queue::{
    browse::{NewTrace, Retried},
    claim::{Claimed, PopRequest, Popped},
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Swept},
    step::{Done, Step},
    store::{
        Manage, Record, Store, Streams,
        browse::{Address, Curate, Retry},
        read::{Head, Read, Row, Slice, Value},
    },
    stream::{Registered, Registration, StateQuery, StateRow},
    tally::{Count, Parked, Vitals},
};
use wakeline_store::{Error, Load};
use wakeline_wake::WaitedKey;

/// The store, with its pops and some of its writes counted and, if wanted, the answers of pops kept
/// back.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) pops: Arc<Pops>,
    pub(crate) writes: AtomicUsize,
}

impl Watched {
    fn counted<T>(&self, write: Write<T>) -> Write<T> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        write
    }
}

#[derive(Debug)]
pub(crate) struct Pops {
    pub(crate) count: AtomicUsize,
    pub(crate) counted: Notify,
    /// A pop is answered with one of these in hand.
    pub(crate) answers: Semaphore,
}

impl Store for Watched {
    fn step(&self, step: Arc<Step>) -> Write<Done> {
        self.counted(self.inner.step(step))
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<Popped> {
        let watching = self.pops.clone();
        self.inner
            .pop(request, lease, time)
            .then(|popped| async move {
                watching.count.fetch_add(1, Ordering::SeqCst);
                watching.counted.notify_waiters();
                let _leave = watching.answers.acquire().await.unwrap();
                popped
            })
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> Write<Vec<i64>> {
        self.inner.hand_back(claim)
    }

    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>> {
        self.inner.extend(lease, time)
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.inner.recheck(waiting)
    }
}

impl Manage for Watched {
    fn configure(&self, options: NewOptions) -> Write<Configured> {
        self.counted(self.inner.configure(options))
    }

    fn delete_queue(&self, queue: String) -> Write<Option<i64>> {
        self.inner.delete_queue(queue)
    }

    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64> {
        self.counted(self.inner.delete_group(scope, with_start))
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64> {
        self.counted(self.inner.seek(scope, to))
    }

    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64> {
        self.inner.subscribe(group, begin_us)
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        self.inner.modes()
    }

    fn set_push_paused(&self, paused: bool) -> Write<Modes> {
        self.inner.set_push_paused(paused)
    }

    fn set_pop_paused(&self, paused: bool) -> Write<Modes> {
        self.counted(self.inner.set_pop_paused(paused))
    }

    fn sweep(&self, limit: u32) -> Write<Swept> {
        self.inner.sweep(limit)
    }
}

impl Streams for Watched {
    fn register(&self, query: Registration) -> Write<Registered> {
        self.inner.register(query)
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        self.inner.states(query)
    }
}

impl Read for Watched {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        self.inner.rows(kind, statement, parameters)
    }

    fn heads(&self, slices: Vec<Slice>, count: i64) -> BoxFuture<'_, Result<Vec<Head>, Error>> {
        self.inner.heads(slices, count)
    }

    fn positions_at(&self, asked: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.inner.positions_at(asked)
    }

    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>> {
        self.inner.health()
    }
}

impl Curate for Watched {
    fn delete_message(&self, address: Address) -> Write<bool> {
        self.counted(self.inner.delete_message(address))
    }

    fn retry(&self, retry: Retry) -> Write<Retried> {
        self.counted(self.inner.retry(retry))
    }

    fn bury(&self, address: Address, group: Option<String>, error: String) -> Write<u64> {
        self.counted(self.inner.bury(address, group, error))
    }

    fn add_trace(&self, trace: NewTrace) -> Write<()> {
        self.inner.add_trace(trace)
    }
}

impl Record for Watched {
    fn add_counts(&self, counts: Vec<Count>) -> Write<()> {
        self.inner.add_counts(counts)
    }

    fn set_parked(&self, node: (String, i64), parked: Vec<Parked>) -> Write<()> {
        self.inner.set_parked(node, parked)
    }

    fn set_vitals(&self, vitals: Vitals) -> Write<()> {
        self.inner.set_vitals(vitals)
    }

    fn load(&self) -> Load {
        self.inner.load()
    }
}
