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
    browse::{DeadLetterRetry, MessageAddress, NewTrace, RetryOutcome},
    claim::{Claim, PopOutcome, PopRequest},
    counters::{CounterRow, HeldPops, NodeStats},
    queue_admin::{ConfigureRequest, ConfigureResult, GroupScope, PauseModes, Seek, SweepResult},
    store::{
        MessageAdmin, QueueAdmin, StatsStore, Store, StreamStore,
        read::{PositionRange, ReadStore, Row, SegmentSpan, Value},
    },
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
    write_batch::{BatchOutcome, WriteBatch},
};
use wakeline_store::{Error, Load};
use wakeline_wake::WaitedKey;

/// The store, with its pops and some of its writes counted and, if wanted, the answers of pops kept
/// back.
#[derive(Debug)]
pub(crate) struct WatchedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) pops: Arc<Pops>,
    pub(crate) writes: AtomicUsize,
}

impl WatchedStore {
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

impl Store for WatchedStore {
    fn apply(&self, batch: Arc<WriteBatch>) -> Write<BatchOutcome> {
        self.counted(self.inner.apply(batch))
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<PopOutcome> {
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

    fn release_claim(&self, claim: Arc<Claim>) -> Write<Vec<i64>> {
        self.inner.release_claim(claim)
    }

    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>> {
        self.inner.extend(lease, time)
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.inner.recheck(waiting)
    }
}

impl QueueAdmin for WatchedStore {
    fn configure(&self, options: ConfigureRequest) -> Write<ConfigureResult> {
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

    fn modes(&self) -> BoxFuture<'_, Result<PauseModes, Error>> {
        self.inner.modes()
    }

    fn set_push_paused(&self, paused: bool) -> Write<PauseModes> {
        self.inner.set_push_paused(paused)
    }

    fn set_pop_paused(&self, paused: bool) -> Write<PauseModes> {
        self.counted(self.inner.set_pop_paused(paused))
    }

    fn sweep(&self, limit: u32) -> Write<SweepResult> {
        self.inner.sweep(limit)
    }
}

impl StreamStore for WatchedStore {
    fn register(&self, query: StreamRegistration) -> Write<RegisterResult> {
        self.inner.register(query)
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        self.inner.states(query)
    }
}

impl ReadStore for WatchedStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>> {
        self.inner.rows(kind, statement, parameters)
    }

    fn segment_spans(
        &self,
        slices: Vec<PositionRange>,
        count: i64,
    ) -> BoxFuture<'_, Result<Vec<SegmentSpan>, Error>> {
        self.inner.segment_spans(slices, count)
    }

    fn positions_at(&self, asked: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.inner.positions_at(asked)
    }

    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>> {
        self.inner.health()
    }
}

impl MessageAdmin for WatchedStore {
    fn delete_message(&self, address: MessageAddress) -> Write<bool> {
        self.counted(self.inner.delete_message(address))
    }

    fn retry(&self, retry: DeadLetterRetry) -> Write<RetryOutcome> {
        self.counted(self.inner.retry(retry))
    }

    fn move_to_dead_letters(
        &self,
        address: MessageAddress,
        group: Option<String>,
        error: String,
    ) -> Write<u64> {
        self.counted(self.inner.move_to_dead_letters(address, group, error))
    }

    fn add_trace(&self, trace: NewTrace) -> Write<()> {
        self.inner.add_trace(trace)
    }
}

impl StatsStore for WatchedStore {
    fn add_counts(&self, counts: Vec<CounterRow>) -> Write<()> {
        self.inner.add_counts(counts)
    }

    fn set_held_pops(&self, node: (String, i64), parked: Vec<HeldPops>) -> Write<()> {
        self.inner.set_held_pops(node, parked)
    }

    fn set_node_stats(&self, node_stats: NodeStats) -> Write<()> {
        self.inner.set_node_stats(node_stats)
    }

    fn load(&self) -> Load {
        self.inner.load()
    }
}
