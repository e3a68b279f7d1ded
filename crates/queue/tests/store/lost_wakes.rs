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
use wakeline_queue::{Queue, ack::AckStatus, claim::PopRequest, service::ClaimGuard};

use crate::{
    calls::{HOUR, ack_of, from, message},
    test_door::{STUCK, acknowledge, delivered, nodes},
    test_store::{TestStore, seed},
};

const ROUNDS: usize = 120;
const GROUPS: [&str; 2] = ["one", "two"];
const PARTITIONS: usize = 3;

pub(crate) async fn no_pop_with_a_lease_misses_a_wake(store: TestStore) {
    no_pop_misses_a_wake(store, ConsumerKind::Lease).await;
}

pub(crate) async fn no_pop_with_auto_ack_misses_a_wake(store: TestStore) {
    no_pop_misses_a_wake(store, ConsumerKind::AutoAck).await;
}

/// Consumers that fail, hang up during a claim, and drop their claims.
pub(crate) async fn no_pop_misses_a_wake_beside_failing_consumers(store: TestStore) {
    no_pop_misses_a_wake(store, ConsumerKind::Clumsy).await;
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

async fn no_pop_misses_a_wake(store: TestStore, kind: ConsumerKind) {
    store.let_the_clock_run();
    let seed = seed().unwrap_or_else(rand::random);
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
                request.auto_ack = kind == ConsumerKind::AutoAck;
                let random = StdRng::seed_from_u64(random.random());
                let consumed = consumed.clone();
                let node = node.clone();
                consumers.spawn(consume(node, request, group, kind, consumed, random));
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
            "round {round}: a consumer is stuck, {pushed:?} of {:?}",
            consumed.times.lock().unwrap().len()
        );
    }
    consumers.shutdown().await;
    if kind != ConsumerKind::Clumsy {
        let times = consumed.times.lock().unwrap();
        assert!(times.values().all(|times| *times == 1));
        assert_eq!(times.len(), number * GROUPS.len());
    }
}

async fn consume(
    node: Arc<Queue>,
    request: PopRequest,
    group: usize,
    kind: ConsumerKind,
    consumed: Arc<ConsumedMessages>,
    mut random: StdRng,
) {
    let is_clumsy = kind == ConsumerKind::Clumsy;
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
        let claimed = delivered(claim);
        let name = &claimed.parts[0].messages[0].transaction_id;
        if request.auto_ack {
            count(&consumed, group, name);
            continue;
        }
        if is_clumsy && random.random_bool(0.2) {
            acknowledge(&node, ack_of(&claimed, name, AckStatus::Retry)).await;
            continue;
        }
        count(&consumed, group, name);
        acknowledge(&node, ack_of(&claimed, name, AckStatus::Completed)).await;
    }
}

fn count(consumed: &ConsumedMessages, group: usize, name: &str) {
    let key = (group, name.to_owned());
    *consumed.times.lock().unwrap().entry(key).or_default() += 1;
    consumed.more.notify_waiters();
}
