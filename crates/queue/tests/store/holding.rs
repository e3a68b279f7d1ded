//! The door itself: pops that wait, are woken, and are given up.

use std::{
    collections::BTreeSet,
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
    ack::{Ack, Acked, Status},
    claim::{Claimed, PopRequest, Popped},
    message::NewMessage,
    service::Claim,
    store::{Store, Stored},
};
use wakeline_store::Error;
use wakeline_wake::{Cause, Engine, Waiting};
use wakeline_web::{Held, Parcel};

use crate::{
    database::Database,
    lost_wakes::engine,
    steps::{Request, from, message, names, push, say},
};

const HOUR: Duration = Duration::from_secs(3_600);
const STUCK: Duration = Duration::from_secs(30);
/// A real lease that a test waits for.
const SHORT: Duration = Duration::from_millis(250);
/// More than there are pops at once.
const ANSWERS: u32 = 100;

/// The store, with its pops counted and, if wanted, their answers kept back.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn Store>,
    pops: AtomicUsize,
    popped: Notify,
    answers: Semaphore,
}

impl Store for Watched {
    fn push(&self, messages: Arc<[NewMessage]>) -> BoxFuture<'_, Result<Stored, Error>> {
        self.inner.push(messages)
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

    fn ack(&self, ack: Arc<Ack>) -> BoxFuture<'_, Result<Acked, Error>> {
        self.inner.ack(ack)
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<bool, Error>> {
        self.inner.hand_back(claim)
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        self.inner.recheck(waiting)
    }
}

struct Door {
    queue: Arc<Queue>,
    store: Arc<Watched>,
    engine: Arc<Engine>,
}

impl Door {
    async fn open(database: &Database) -> Self {
        database.let_the_clock_run();
        let store = Arc::new(Watched {
            inner: database.store().await,
            pops: AtomicUsize::new(0),
            popped: Notify::new(),
            answers: Semaphore::new(ANSWERS as usize),
        });
        let engine = engine();
        let bus = Bus::local(engine.clone());
        let queue = Queue::new(store.clone(), engine.clone(), bus, Limits::default());
        Self {
            queue,
            store,
            engine,
        }
    }

    fn pop(&self, request: Request) -> JoinHandle<Held<Claim>> {
        let queue = self.queue.clone();
        tokio::spawn(async move { queue.pop(request.0, HOUR).await.unwrap() })
    }

    /// A pop that has looked and found nothing.
    async fn parked(&self, request: Request) -> JoinHandle<Held<Claim>> {
        let (pops, held) = (self.pops(), self.engine.held());
        let pop = self.pop(request);
        self.until_pops(pops + 1).await;
        assert_eq!(self.engine.held(), held + 1);
        assert!(!pop.is_finished());
        pop
    }

    fn pops(&self) -> usize {
        self.store.pops.load(Ordering::SeqCst)
    }

    async fn until_pops(&self, count: usize) {
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

    async fn push(&self, partitions: &[&str], transaction: &str) {
        let sent = partitions.iter();
        let sent = sent.map(|partition| message("q", partition, transaction));
        self.queue.push(sent.collect()).await.unwrap();
    }
}

async fn answer(pop: JoinHandle<Held<Claim>>) -> (Claim, Option<Cause>) {
    let held = timeout(STUCK, pop).await.expect("nobody woke it").unwrap();
    let claim = held.value.expect("an hour has not passed");
    (claim, held.timing.woken_by)
}

/// Delivered, and then nothing is heard of it any more.
async fn taken(pop: JoinHandle<Held<Claim>>) -> Claimed {
    let (claim, _) = answer(pop).await;
    let claimed = claim.claimed().clone();
    claim.delivered();
    claimed
}

pub(crate) async fn a_push_answers_a_waiting_pop(database: Database) {
    let door = Door::open(&database).await;
    for request in [from("q"), from("q").partition("p"), from("q").auto_ack()] {
        let pop = door.parked(request).await;
        door.push(&["p"], &Uuid::new_v4().to_string()).await;
        let (claim, woken_by) = answer(pop).await;
        assert_eq!(woken_by, Some(Cause::Notify));
        let claimed = claim.claimed().clone();
        claim.delivered();
        let ack = say(&claimed, names(&claimed)[0], Status::Completed);
        door.queue.ack(ack).await.unwrap();
    }
}

pub(crate) async fn each_partition_that_is_pushed_answers_a_waiter(database: Database) {
    let door = Door::open(&database).await;
    let partitions = ["p0", "p1", "p2", "p3", "p4"];
    let mut pops = Vec::new();
    for _ in partitions {
        pops.push(door.parked(from("q")).await);
    }
    let another = door.parked(from("q")).await;
    door.push(&partitions, "a").await;
    let mut served = BTreeSet::new();
    for pop in pops {
        served.insert(taken(pop).await.partition);
    }
    assert_eq!(served, partitions.map(str::to_owned).into());
    assert!(!another.is_finished());
    another.abort();
}

async fn hang_up_during_the_claim(database: Database, request: Request) {
    let door = Door::open(&database).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    let kept_back = door.store.answers.acquire_many(ANSWERS).await.unwrap();
    let pop = door.pop(request.clone());
    door.until_pops(1).await;
    pop.abort();
    assert!(pop.await.unwrap_err().is_cancelled());
    assert_eq!(door.engine.held(), 0, "it leaves at once");
    drop(kept_back);
    let claimed = taken(door.pop(request)).await;
    assert_eq!(names(&claimed), ["a"]);
}

pub(crate) async fn a_pop_that_hangs_up_during_its_claim_hands_it_back(database: Database) {
    hang_up_during_the_claim(database, from("q")).await;
}

pub(crate) async fn an_auto_ack_that_hangs_up_during_its_claim_hands_it_back(database: Database) {
    hang_up_during_the_claim(database, from("q").auto_ack()).await;
}

async fn drop_the_claim(database: Database, request: Request) {
    let door = Door::open(&database).await;
    let first = door.parked(request.clone()).await;
    let second = door.parked(request).await;
    door.push(&["p"], "a").await;
    let (claim, _) = answer(first).await;
    assert_eq!(names(claim.claimed()), ["a"]);
    drop(claim);
    assert_eq!(names(&taken(second).await), ["a"]);
}

pub(crate) async fn a_claim_that_is_dropped_is_handed_back_and_wakes(database: Database) {
    drop_the_claim(database, from("q")).await;
}

pub(crate) async fn an_auto_ack_that_is_dropped_is_handed_back_and_wakes(database: Database) {
    drop_the_claim(database, from("q").auto_ack()).await;
}

/// The group has caught up with the queue, and its leases are short.
async fn with_short_leases(database: &Database, door: &Door) {
    push(&*door.store.inner, "q", "p", &["first"]).await;
    from("q").auto_ack().claim(&*door.store.inner).await;
    database.set_lease("q", SHORT).await;
}

pub(crate) async fn the_end_of_a_lease_wakes_who_came_after_it(database: Database) {
    for request in [from("q"), from("q").partition("p")] {
        let door = Door::open(&database).await;
        let (queue, partition) = (Uuid::new_v4().to_string(), "p");
        push(&*door.store.inner, &queue, partition, &["a"]).await;
        database.set_lease(&queue, SHORT).await;
        let request = Request(PopRequest { queue, ..request.0 });
        taken(door.pop(request.clone())).await;
        let pops = door.pops();
        let (claim, woken_by) = answer(door.pop(request)).await;
        assert_eq!(names(claim.claimed()), ["a"]);
        assert_eq!(woken_by, Some(Cause::Timer));
        // Looked, slept until the lease ended, looked again. A timer may be early once.
        assert!(door.pops() - pops <= 3, "{} looks", door.pops() - pops);
    }
}

pub(crate) async fn the_end_of_a_lease_wakes_who_waited_before_it(database: Database) {
    let door = Door::open(&database).await;
    with_short_leases(&database, &door).await;
    let first = door.parked(from("q")).await;
    let second = door.parked(from("q")).await;
    let third = door.parked(from("q").partition("p")).await;
    door.push(&["p"], "a").await;
    assert_eq!(names(&taken(first).await), ["a"]);
    assert_eq!(names(&taken(second).await), ["a"]);
    assert_eq!(names(&taken(third).await), ["a"]);
}

pub(crate) async fn a_wait_without_news_asks_the_store_once(database: Database) {
    let door = Door::open(&database).await;
    push(&*door.store.inner, "q", "p", &["a"]).await;
    from("q").auto_ack().claim(&*door.store.inner).await;
    let pop = door.queue.pop(from("q").0, Duration::from_millis(200));
    assert!(pop.await.unwrap().value.is_none());
    assert_eq!(door.pops(), 1);
}
