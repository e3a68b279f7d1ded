//! Large transactions beside small ones on one partition: what commits late must not be skipped.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Barrier, task::JoinSet};
use wakeline_queue::{claim::PopOutcome, store::Store};

use crate::{
    calls::{RELEASED, complete, from, message, push_all},
    races::finished,
    test_store::TestStore,
};

const LARGE: usize = 2_000;
const LARGE_PUSHES: usize = 5;
const LARGE_PRODUCERS: usize = 2;
const SINGLE_PRODUCERS: usize = 4;
const CONSUMERS_PER_GROUP: usize = 2;
const GROUPS: [&str; 2] = ["one", "two"];

#[derive(Default)]
struct Run {
    /// Messages whose push was answered.
    stored: Mutex<Vec<String>>,
    large_left: AtomicUsize,
    pushing: AtomicUsize,
    is_over: AtomicBool,
    /// In the order of delivery, per group.
    delivered: [Mutex<Vec<String>>; 2],
}

pub(crate) async fn no_stored_message_is_lost(store: TestStore) {
    store.let_the_clock_run();
    let nodes = store.nodes().await;
    let run = Arc::new(Run::default());
    run.large_left.store(LARGE_PRODUCERS, Ordering::SeqCst);
    let producers = LARGE_PRODUCERS + SINGLE_PRODUCERS;
    run.pushing.store(producers, Ordering::SeqCst);
    let start = Arc::new(Barrier::new(producers + GROUPS.len() * CONSUMERS_PER_GROUP));
    let mut tasks = JoinSet::new();
    for producer in 0..producers {
        let (store, run, start) = (nodes[producer % 2].clone(), run.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            if producer < LARGE_PRODUCERS {
                for number in 0..LARGE_PUSHES {
                    produce(&*store, &run, producer, number * LARGE, LARGE).await;
                }
                run.large_left.fetch_sub(1, Ordering::SeqCst);
            } else {
                let mut number = 0;
                while run.large_left.load(Ordering::SeqCst) > 0 {
                    produce(&*store, &run, producer, number, 1).await;
                    number += 1;
                }
            }
            if run.pushing.fetch_sub(1, Ordering::SeqCst) == 1 {
                run.is_over.store(true, Ordering::SeqCst);
            }
        });
    }
    for consumer in 0..GROUPS.len() * CONSUMERS_PER_GROUP {
        let (store, run, start) = (nodes[consumer / 2 % 2].clone(), run.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            consume(&*store, &run, consumer % 2).await;
        });
    }
    finished(tasks).await;

    let [one, two] = &run.delivered;
    let (one, two) = (one.lock().unwrap(), two.lock().unwrap());
    assert!(*one == *two, "the groups got another order");
    let delivered: HashSet<&String> = one.iter().collect();
    assert_eq!(delivered.len(), one.len(), "delivered twice");
    let stored = run.stored.lock().unwrap();
    let lost = stored.iter().filter(|name| !delivered.contains(name));
    assert_eq!(lost.count(), 0, "lost of {}", stored.len());
    assert_eq!(stored.len(), delivered.len());
    assert!(stored.len() > LARGE * LARGE_PUSHES * LARGE_PRODUCERS);
    for producer in 0..producers {
        let prefix = format!("{producer}-");
        let own = one.iter().filter_map(|name| name.strip_prefix(&prefix));
        let own: Vec<usize> = own.map(|number| number.parse().unwrap()).collect();
        assert!(own.is_sorted(), "a producer's messages got another order");
    }
}

async fn produce(store: &dyn Store, run: &Run, producer: usize, first: usize, count: usize) {
    let names: Vec<String> = (first..first + count)
        .map(|number| format!("{producer}-{number}"))
        .collect();
    let sent = names.iter().map(|name| message("q", "p", name));
    let pushed = push_all(store, sent.collect()).await;
    assert!(pushed.iter().all(|pushed| !pushed.duplicate));
    run.stored.lock().unwrap().extend(names);
}

async fn consume(store: &dyn Store, run: &Run, group: usize) {
    let request = from("q").group(GROUPS[group]).batch(300);
    loop {
        // Before the pop: what it does not find then is not there.
        let is_over = run.is_over.load(Ordering::SeqCst);
        match request.pop(store).await {
            PopOutcome::Claimed(claimed) => {
                let names = claimed.messages().map(|m| m.transaction_id.clone());
                run.delivered[group].lock().unwrap().extend(names);
                let last = &claimed.messages().last().unwrap().transaction_id;
                let done = complete(store, &claimed, last).await;
                assert_eq!(done, RELEASED);
            }
            PopOutcome::Empty {
                recheck_after: None,
            } if is_over => return,
            PopOutcome::Empty { .. } => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}
