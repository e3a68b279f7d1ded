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
    seal::Fingerprint,
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

/// Methods of a trait that go to the inner store: `counted` ones as counted writes.
macro_rules! forward {
    ($($trait:ident { $($(#$counted:tt)? $method:ident($($name:ident: $type:ty),*) -> $answer:ty;)+ })+) => {
        $(impl $trait for WatchedStore {
            $(fn $method(&self, $($name: $type),*) -> $answer {
                forward!($(#$counted)? self, self.inner.$method($($name),*))
            })+
        })+
    };
    (#[counted] $self:ident, $call:expr) => { $self.counted($call) };
    ($self:ident, $call:expr) => { $call };
}

/// What a read returns.
type Read<'a, T> = BoxFuture<'a, Result<T, Error>>;

forward! {
    QueueAdmin {
        #[counted] configure(options: ConfigureRequest) -> Write<Option<ConfigureResult>>;
        use_key(keys: Vec<Fingerprint>, may_be_first: bool) -> Write<Option<Fingerprint>>;
        delete_queue(queue: String) -> Write<Option<i64>>;
        #[counted] delete_group(scope: GroupScope, with_start: bool) -> Write<u64>;
        #[counted] seek(scope: GroupScope, to: Seek) -> Write<u64>;
        subscribe(group: String, begin_us: i64) -> Write<u64>;
        modes() -> Read<'_, PauseModes>;
        set_push_paused(paused: bool) -> Write<PauseModes>;
        #[counted] set_pop_paused(paused: bool) -> Write<PauseModes>;
        sweep(limit: u32) -> Write<SweepResult>;
    }
    StreamStore {
        register(query: StreamRegistration) -> Write<RegisterResult>;
        states(query: StateQuery) -> Read<'_, Vec<StateRow>>;
    }
    ReadStore {
        rows(kind: &'static str, statement: &'static str, parameters: Vec<Value>) -> Read<'_, Vec<Row>>;
        segment_spans(ranges: Vec<PositionRange>, count: i64) -> Read<'_, Vec<SegmentSpan>>;
        positions_at(times: Vec<(i64, i64)>) -> Read<'_, Vec<i64>>;
        health() -> Read<'_, serde_json::Value>;
    }
    MessageAdmin {
        #[counted] delete_message(address: MessageAddress) -> Write<bool>;
        #[counted] retry(retry: DeadLetterRetry) -> Write<RetryOutcome>;
        #[counted] move_to_dead_letters(address: MessageAddress, group: Option<String>, error: String) -> Write<u64>;
        add_trace(trace: NewTrace) -> Write<()>;
    }
    StatsStore {
        add_counts(counts: Vec<CounterRow>) -> Write<()>;
        set_held_pops(node: (String, i64), held_pops: Vec<HeldPops>) -> Write<()>;
        set_node_stats(stats: NodeStats) -> Write<()>;
        load() -> Load;
    }
}
