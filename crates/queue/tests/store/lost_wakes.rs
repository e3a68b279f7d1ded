//! No lost wake: with the fallback off and hour-long holds, a pop that is not woken is stuck.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::timeout,
};
use wakeline_bus::{Bus, BusMode, Options};
use wakeline_queue::{
    Limits, Queue,
    ack::{Ack, AckOutcome, AckStatus},
    claim::PopRequest,
    service::ClaimGuard,
    write_batch::WriteBatch,
};
use wakeline_testkit::eventually;
use wakeline_wake::Engine;
use wakeline_web::DeliveryGuard;

use crate::{
    calls::{from, message, say},
    test_store::TestStore,
};

const HOUR: Duration = Duration::from_secs(3_600);
/// A wake takes milliseconds; a consumer without its message by then never gets it.
const STUCK: Duration = Duration::from_secs(30);
const ROUNDS: usize = 120;
const GROUPS: [&str; 2] = ["one", "two"];
const PARTITIONS: usize = 3;

/// Two nodes. On SQLite they are two stores on one file that share the engine.
pub(crate) async fn nodes(store: &TestStore) -> [Arc<Queue>; 2] {
    let limits = Limits::default();
    let Some(connector) = store.database.connector() else {
        let engine = engine();
        let bus = Bus::local(engine.clone());
        let [one, two] = store.nodes().await;
        return [one, two]
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

pub(crate) fn engine() -> Arc<Engine> {
    let engine = Engine::new(wakeline_wake::Limits::default());
    tokio::spawn(engine.clone().run());
    engine
}

pub(crate) async fn with_leases_nobody_is_left_waiting(store: TestStore) {
    nobody_is_left_waiting(store, ConsumerKind::Lease).await;
}

pub(crate) async fn with_auto_ack_nobody_is_left_waiting(store: TestStore) {
    nobody_is_left_waiting(store, ConsumerKind::AutoAck).await;
}

/// Consumers that fail, hang up during a claim, and drop what they were given.
pub(crate) async fn with_failures_nobody_is_left_waiting(store: TestStore) {
    nobody_is_left_waiting(store, ConsumerKind::Clumsy).await;
}

#[derive(Clone, Copy, PartialEq)]
enum ConsumerKind {
    Lease,
    AutoAck,
    Clumsy,
}

#[derive(Default)]
struct ConsumedMessages {
    times: Mutex<HashMap<(usize, String), usize>>,
    more: Notify,
}

impl ConsumedMessages {
    async fn everywhere(&self, names: &[String]) {
        loop {
            let more = self.more.notified();
            let is_there = {
                let times = self.times.lock().unwrap();
                let mut wanted = names
                    .iter()
                    .flat_map(|name| (0..GROUPS.len()).map(move |group| (group, name.clone())));
                wanted.all(|key| times.contains_key(&key))
            };
            if is_there {
                return;
            }
            more.await;
        }
    }
}

async fn nobody_is_left_waiting(store: TestStore, manner: ConsumerKind) {
    store.let_the_clock_run();
    let seed =
        std::env::var("WAKELINE_SEED").map_or_else(|_| rand::random(), |s| s.parse().unwrap());
    eprintln!("WAKELINE_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let nodes = nodes(&store).await;
    let consumed = Arc::new(ConsumedMessages::default());
    let mut consumers = JoinSet::new();
    for node in &nodes {
        for (group, name) in GROUPS.iter().enumerate() {
            let any = from("q").group(name);
            let one = any.clone().partition("p0");
            for request in [any.clone(), one, any] {
                let mut request = request.0;
                request.auto_ack = manner == ConsumerKind::AutoAck;
                let random = StdRng::seed_from_u64(random.random());
                let consumed = consumed.clone();
                let node = node.clone();
                consumers.spawn(consume(node, request, group, manner, consumed, random));
            }
        }
    }
    let mut number = 0;
    for round in 0..ROUNDS {
        // Some at once, so that a push meets readers that are just catching up; never so many
        // that the next would hide what the last one lost.
        let count = random.random_range(1..=4);
        let (sent, mut names) = mpsc::unbounded_channel();
        for _ in 0..count {
            number += 1;
            let name = format!("m{number}");
            let partition = format!("p{}", random.random_range(0..PARTITIONS));
            let pause = Duration::from_micros(random.random_range(0..3_000));
            let (node, sent) = (nodes[random.random_range(0..2)].clone(), sent.clone());
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                let one = vec![message("q", &partition, &name)];
                node.push(one).await.unwrap();
                sent.send(name).unwrap();
            });
        }
        drop(sent);
        let mut pushed = Vec::new();
        while let Some(name) = names.recv().await {
            pushed.push(name);
        }
        assert_eq!(pushed.len(), count);
        let got = timeout(STUCK, consumed.everywhere(&pushed)).await;
        assert!(
            got.is_ok(),
            "round {round}: someone is stuck, {pushed:?} of {:?}",
            consumed.times.lock().unwrap().len()
        );
    }
    consumers.shutdown().await;
    if manner != ConsumerKind::Clumsy {
        let times = consumed.times.lock().unwrap();
        assert!(times.values().all(|times| *times == 1));
        assert_eq!(times.len(), number * GROUPS.len());
    }
}

async fn consume(
    node: Arc<Queue>,
    request: PopRequest,
    group: usize,
    manner: ConsumerKind,
    consumed: Arc<ConsumedMessages>,
    mut random: StdRng,
) {
    let is_clumsy = manner == ConsumerKind::Clumsy;
    loop {
        let patience = match is_clumsy && random.random_bool(0.5) {
            true => Duration::from_micros(random.random_range(0..8_000)),
            false => HOUR,
        };
        let Ok(held) = timeout(patience, node.pop(request.clone(), HOUR)).await else {
            continue;
        };
        let claim: ClaimGuard = held.unwrap().value.expect("an hour has not passed");
        if is_clumsy && random.random_bool(0.2) {
            continue;
        }
        let claimed = claim.claim().clone();
        claim.delivered();
        let name = &claimed.parts[0].messages[0].transaction_id;
        if request.auto_ack {
            count(&consumed, group, name);
            continue;
        }
        if is_clumsy && random.random_bool(0.2) {
            acknowledge(&node, say(&claimed, name, AckStatus::Retry)).await;
            continue;
        }
        count(&consumed, group, name);
        acknowledge(&node, say(&claimed, name, AckStatus::Completed)).await;
    }
}

pub(crate) async fn acknowledge(node: &Queue, ack: Ack) -> AckOutcome {
    let batch = WriteBatch::of_acks(vec![ack]);
    node.apply(batch).await.unwrap().acked[0]
}

fn count(consumed: &ConsumedMessages, group: usize, name: &str) {
    let key = (group, name.to_owned());
    *consumed.times.lock().unwrap().entry(key).or_default() += 1;
    consumed.more.notify_waiters();
}
