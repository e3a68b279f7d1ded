//! The door on a store that is watched.

mod people;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{Notify, Semaphore},
    task::JoinHandle,
    time::timeout,
};
use uuid::Uuid;
use wakeline_bus::{Bus, Due};
use wakeline_queue::{
    Limits, Queue,
    claim::{Claimed, PopRequest, Popped},
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Sought, Swept},
    seal::Sealer,
    service::Claim,
    step::{Done, Step},
    store::{Manage, Store, Streams},
    stream::{Registered, Registration, StateQuery, StateRow},
};
use wakeline_store::Error;
use wakeline_wake::{Cause, Engine, Waiting};
use wakeline_web::{Held, Parcel};

use crate::{
    database::Database,
    lost_wakes::engine,
    steps::{Request, message},
};

const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const STUCK: Duration = Duration::from_secs(30);
/// More than there are pops at once.
pub(crate) const ANSWERS: u32 = 100;

/// The store, with its pops counted and, if wanted, their answers kept back.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) inner: Arc<dyn Store>,
    pops: AtomicUsize,
    popped: Notify,
    pub(crate) answers: Semaphore,
}

impl Store for Watched {
    fn step(&self, step: Arc<Step>) -> BoxFuture<'_, Result<Done, Error>> {
        self.inner.step(step)
    }

    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>> {
        async move {
            let popped = self.inner.pop(request, lease, time).await;
            self.pops.fetch_add(1, Ordering::SeqCst);
            self.popped.notify_waiters();
            let _leave = self.answers.acquire().await.unwrap();
            popped
        }
        .boxed()
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.inner.hand_back(claim)
    }

    fn extend(
        &self,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Option<(usize, i64)>, Error>> {
        self.inner.extend(lease, time)
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        self.inner.recheck(waiting)
    }
}

impl Manage for Watched {
    fn configure(&self, options: NewOptions) -> BoxFuture<'_, Result<Configured, Error>> {
        self.inner.configure(options)
    }

    fn delete_queue(&self, queue: String) -> BoxFuture<'_, Result<bool, Error>> {
        self.inner.delete_queue(queue)
    }

    fn delete_group(
        &self,
        scope: GroupScope,
        with_start: bool,
    ) -> BoxFuture<'_, Result<u64, Error>> {
        self.inner.delete_group(scope, with_start)
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> BoxFuture<'_, Result<Sought, Error>> {
        self.inner.seek(scope, to)
    }

    fn subscribe(&self, group: String, begin_us: i64) -> BoxFuture<'_, Result<u64, Error>> {
        self.inner.subscribe(group, begin_us)
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        self.inner.modes()
    }

    fn set_push_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        self.inner.set_push_paused(paused)
    }

    fn set_pop_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        self.inner.set_pop_paused(paused)
    }

    fn sweep(&self, limit: u32) -> BoxFuture<'_, Result<Swept, Error>> {
        self.inner.sweep(limit)
    }
}

impl Streams for Watched {
    fn register(&self, query: Registration) -> BoxFuture<'_, Result<Registered, Error>> {
        self.inner.register(query)
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        self.inner.states(query)
    }
}

pub(crate) struct Door {
    pub(crate) queue: Arc<Queue>,
    pub(crate) store: Arc<Watched>,
    pub(crate) engine: Arc<Engine>,
}

impl Door {
    pub(crate) async fn open(database: &Database) -> Self {
        Self::with_key(database, None).await
    }

    pub(crate) async fn with_key(database: &Database, sealer: Option<Sealer>) -> Self {
        database.let_the_clock_run();
        let store = Arc::new(Watched {
            inner: database.store().await,
            pops: AtomicUsize::new(0),
            popped: Notify::new(),
            answers: Semaphore::new(ANSWERS as usize),
        });
        let engine = engine();
        let bus = Bus::local(engine.clone());
        let queue = Queue::new(
            store.clone(),
            engine.clone(),
            bus,
            Limits::default(),
            sealer,
        );
        Self {
            queue,
            store,
            engine,
        }
    }

    pub(crate) fn pop(&self, request: Request) -> JoinHandle<Held<Claim>> {
        let queue = self.queue.clone();
        tokio::spawn(async move { queue.pop(request.0, HOUR).await.unwrap() })
    }

    /// A pop that has looked and found nothing.
    pub(crate) async fn parked(&self, request: Request) -> JoinHandle<Held<Claim>> {
        let (pops, held) = (self.pops(), self.engine.held());
        let pop = self.pop(request);
        self.until_pops(pops + 1).await;
        assert_eq!(self.engine.held(), held + 1);
        assert!(!pop.is_finished());
        pop
    }

    pub(crate) fn pops(&self) -> usize {
        self.store.pops.load(Ordering::SeqCst)
    }

    pub(crate) async fn until_pops(&self, count: usize) {
        let reached = async {
            loop {
                let popped = self.store.popped.notified();
                if self.pops() >= count {
                    return;
                }
                popped.await;
            }
        };
        timeout(STUCK, reached).await.expect("the store is asked");
    }

    pub(crate) async fn push(&self, partitions: &[&str], transaction: &str) {
        let sent = partitions.iter();
        let sent = sent.map(|partition| message("q", partition, transaction));
        self.queue.push(sent.collect()).await.unwrap();
    }
}

pub(crate) async fn answer(pop: JoinHandle<Held<Claim>>) -> (Claim, Option<Cause>) {
    let held = timeout(STUCK, pop).await.expect("nobody woke it").unwrap();
    let claim = held.value.expect("an hour has not passed");
    (claim, held.timing.woken_by)
}

/// Delivered, and then nothing is heard of it any more.
pub(crate) async fn taken(pop: JoinHandle<Held<Claim>>) -> Claimed {
    let (claim, _) = answer(pop).await;
    let claimed = claim.claimed().clone();
    claim.delivered();
    claimed
}
