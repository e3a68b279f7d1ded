//! The door on a store that is watched.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore},
    task::JoinHandle,
    time::timeout,
};
use wakeline_bus::{Bus, Intervals, watch};
use wakeline_queue::{Limits, Queue, claim::Claim, seal::Sealer, service::ClaimGuard};
use wakeline_wake::{Cause, Engine};
use wakeline_web::{DeliveryGuard, HoldOutcome};

use crate::{
    calls::{Request, message},
    lost_wakes::engine,
    test_store::TestStore,
    watched_store::{Pops, WatchedStore},
};

const HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const STUCK: Duration = Duration::from_secs(30);
/// More than there are pops at once.
pub(crate) const ANSWERS: u32 = 100;

pub(crate) struct TestDoor {
    pub(crate) queue: Arc<Queue>,
    pub(crate) store: Arc<WatchedStore>,
    pub(crate) engine: Arc<Engine>,
}

impl TestDoor {
    pub(crate) async fn open(store: &TestStore) -> Self {
        Self::with_key(store, None).await
    }

    pub(crate) async fn with_key(store: &TestStore, sealer: Option<Sealer>) -> Self {
        store.let_the_clock_run();
        let store = Arc::new(WatchedStore {
            inner: store.another_node().await,
            pops: Arc::new(Pops {
                count: AtomicUsize::new(0),
                counted: Notify::new(),
                answers: Semaphore::new(ANSWERS as usize),
            }),
            writes: AtomicUsize::new(0),
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

    /// From here on the door asks its store when the bus says so, and never by itself.
    pub(crate) fn watch(&self) {
        let intervals = Intervals {
            fallback: HOUR,
            degraded: HOUR,
        };
        let (bus, engine) = (self.queue.bus().clone(), self.engine.clone());
        tokio::spawn(watch(bus, engine, vec![self.queue.clone()], intervals));
    }

    pub(crate) fn pop(&self, request: Request) -> JoinHandle<HoldOutcome<ClaimGuard>> {
        let queue = self.queue.clone();
        tokio::spawn(async move { queue.pop(request.0, HOUR).await.unwrap() })
    }

    /// A pop that has looked and found nothing.
    pub(crate) async fn parked(&self, request: Request) -> JoinHandle<HoldOutcome<ClaimGuard>> {
        let (pops, held) = (self.pops(), self.engine.held());
        let pop = self.pop(request);
        self.until_pops(pops + 1).await;
        assert_eq!(self.engine.held(), held + 1);
        assert!(!pop.is_finished());
        pop
    }

    pub(crate) fn pops(&self) -> usize {
        self.store.pops.count.load(Ordering::SeqCst)
    }

    /// How many writes of the store were called.
    pub(crate) fn writes(&self) -> usize {
        self.store.writes.load(Ordering::SeqCst)
    }

    pub(crate) async fn until_pops(&self, count: usize) {
        let reached = async {
            loop {
                let popped = self.store.pops.counted.notified();
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

pub(crate) async fn answer(
    pop: JoinHandle<HoldOutcome<ClaimGuard>>,
) -> (ClaimGuard, Option<Cause>) {
    let held = timeout(STUCK, pop).await.expect("nobody woke it").unwrap();
    let claim = held.value.expect("an hour has not passed");
    (claim, held.timing.woken_by)
}

/// Delivered, and then nothing is heard of it any more.
pub(crate) async fn taken(pop: JoinHandle<HoldOutcome<ClaimGuard>>) -> Claim {
    let (claim, _) = answer(pop).await;
    let claimed = claim.claim().clone();
    claim.delivered();
    claimed
}
