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
use wakeline_bus::{Bus, BusMode, Intervals, Options, watch};
use wakeline_queue::{
    Limits, Queue,
    ack::{Ack, AckOutcome},
    claim::Claim,
    seal::Sealer,
    service::ClaimGuard,
    write_batch::WriteBatch,
};
use wakeline_testkit::eventually;
use wakeline_wake::{Cause, Engine};
use wakeline_web::{DeliveryGuard, HoldOutcome};

use crate::{
    calls::{HOUR, Request, message},
    test_store::TestStore,
    watched_store::{Pops, WatchedStore},
};

pub(crate) const STUCK: Duration = Duration::from_secs(30);
/// More than there are pops at once.
pub(crate) const ANSWERS: u32 = 100;

pub(crate) type HeldPop = JoinHandle<HoldOutcome<ClaimGuard>>;

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
        let (bus, limits) = (Bus::local(engine.clone()), Limits::default());
        let queue = Queue::new(store.clone(), engine.clone(), bus, limits, sealer);
        Self {
            queue,
            store,
            engine,
        }
    }

    /// From here on the door rechecks when the bus asks it to, and never by itself.
    pub(crate) fn recheck_on_request(&self) {
        recheck_on_request(&self.queue);
    }

    pub(crate) fn pop(&self, request: Request) -> HeldPop {
        let queue = self.queue.clone();
        tokio::spawn(async move { queue.pop(request.0, HOUR).await.unwrap() })
    }

    /// A pop that has checked the store and found nothing.
    pub(crate) async fn parked(&self, request: Request) -> HeldPop {
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

/// From here on the door rechecks when the bus asks it to, and never by itself.
pub(crate) fn recheck_on_request(queue: &Arc<Queue>) {
    let intervals = Intervals {
        fallback: HOUR,
        degraded: HOUR,
    };
    let (bus, engine) = (queue.bus().clone(), queue.engine().clone());
    tokio::spawn(watch(bus, engine, vec![queue.clone()], intervals));
}

pub(crate) fn engine() -> Arc<Engine> {
    let engine = Engine::new(wakeline_wake::Limits::default());
    tokio::spawn(engine.clone().run());
    engine
}

/// Two nodes. On SQLite they are two stores on one file that share the engine.
pub(crate) async fn nodes(store: &TestStore) -> [Arc<Queue>; 2] {
    let limits = Limits::default();
    let Some(connector) = store.database.connector() else {
        let engine = engine();
        let bus = Bus::local(engine.clone());
        return store
            .nodes()
            .await
            .map(|store| Queue::new(store, engine.clone(), bus.clone(), limits.clone(), None));
    };
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let engine = engine();
        let options = Options {
            canary: Duration::from_millis(200),
            ..Options::default()
        };
        let bus = Bus::postgres(engine.clone(), connector.clone(), &options);
        eventually("the bus to be live", async || bus.mode() == BusMode::Live).await;
        let store = store.another_node().await;
        nodes.push(Queue::new(store, engine, bus, limits.clone(), None));
    }
    nodes.try_into().expect("there are two")
}

pub(crate) async fn acknowledge(node: &Queue, ack: Ack) -> AckOutcome {
    let batch = WriteBatch::of_acks(vec![ack]);
    node.apply(batch).await.unwrap().acked[0]
}

pub(crate) async fn answer(pop: HeldPop) -> (ClaimGuard, Option<Cause>) {
    let held = timeout(STUCK, pop).await.expect("no wake came").unwrap();
    let claim = held.value.expect("an hour has not passed");
    (claim, held.timing.woken_by)
}

/// The claim of an answer that was delivered.
pub(crate) async fn taken(pop: HeldPop) -> Claim {
    delivered(answer(pop).await.0)
}

pub(crate) fn delivered(claim: ClaimGuard) -> Claim {
    let claimed = claim.claim().clone();
    claim.delivered();
    claimed
}
