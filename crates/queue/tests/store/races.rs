//! Races of two nodes.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::Barrier, task::JoinSet, time::timeout};
use wakeline_queue::{
    claim::{Claim, PopOutcome},
    store::Store,
};

use crate::{
    calls::{RELEASED, complete, from, message, names, part, push, push_all},
    test_store::TestStore,
};

/// A task that takes longer hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(100);

pub(crate) async fn finished<T: 'static>(tasks: JoinSet<T>) -> Vec<T> {
    let all = timeout(HANGS, tasks.join_all()).await;
    all.expect("a race hangs")
}

/// Runs `count` tasks that start together, on both nodes in turn.
pub(crate) async fn race<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    nodes: &[Arc<dyn Store>; 2],
    count: usize,
    task: impl Fn(usize, Arc<dyn Store>) -> F,
) -> Vec<T> {
    let start = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for number in 0..count {
        let (start, task) = (start.clone(), task(number, nodes[number % 2].clone()));
        tasks.spawn(async move {
            start.wait().await;
            task.await
        });
    }
    finished(tasks).await
}

pub(crate) async fn a_partition_is_leased_to_one_node(store: TestStore) {
    const PARTITIONS: usize = 4;
    const MESSAGES: usize = 30;
    store.let_the_clock_run();
    let nodes = store.nodes().await;
    for partition in 0..PARTITIONS {
        let name = format!("p{partition}");
        let sent = (0..MESSAGES).map(|number| message("q", &name, &number.to_string()));
        push_all(&*nodes[0], sent.collect()).await;
    }
    let held = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::new(Mutex::new(HashMap::<String, Vec<usize>>::new()));
    race(&nodes, 8, |_, store| {
        let (held, seen) = (held.clone(), seen.clone());
        async move {
            loop {
                let claimed = match from("q").pop(&*store).await {
                    PopOutcome::Claimed(claimed) => claimed,
                    PopOutcome::Empty {
                        recheck_after: None,
                    } => return,
                    PopOutcome::Empty { .. } => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                };
                let partition = part(&claimed).partition.clone();
                let is_first = held.lock().unwrap().insert(partition.clone());
                assert!(is_first, "two live leases on {partition}");
                tokio::time::sleep(Duration::from_millis(1)).await;
                let name = names(&claimed)[0];
                let number = name.parse().unwrap();
                let order = partition.clone();
                seen.lock().unwrap().entry(order).or_default().push(number);
                assert!(held.lock().unwrap().remove(&partition));
                assert_eq!(complete(&*store, &claimed, name).await, RELEASED);
            }
        }
    })
    .await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), PARTITIONS);
    for order in seen.values() {
        assert_eq!(*order, (0..MESSAGES).collect::<Vec<_>>());
    }
}

pub(crate) async fn concurrent_pushes_of_one_transaction_id_store_one_message(store: TestStore) {
    const WRITERS: usize = 8;
    let nodes = store.nodes().await;
    for round in 0..25 {
        let pushed = race(&nodes, WRITERS, |writer, store| async move {
            let partition = format!("p{}", round / 5);
            let names = [format!("{round}-{writer}"), format!("{round}")];
            let sent = names.map(|name| message("q", &partition, &name));
            push_all(&*store, sent.to_vec()).await.remove(1)
        })
        .await;
        let stored: Vec<_> = pushed.iter().filter(|pushed| !pushed.duplicate).collect();
        assert_eq!(stored.len(), 1, "{pushed:?}");
        assert!(pushed.iter().all(|pushed| pushed.id == stored[0].id));
    }
    let count = i64::try_from(25 * (WRITERS + 1)).unwrap();
    assert_eq!(store.messages().await, count);
}

/// Known and new queues and partitions, each node in its own order.
pub(crate) async fn concurrent_pushes_do_not_deadlock(store: TestStore) {
    const ROUNDS: usize = 20;
    const WRITERS: usize = 6;
    let nodes = store.nodes().await;
    let names: Vec<(String, String)> = (0..12)
        .map(|number| (format!("q{}", number % 4), format!("p{}", number / 4)))
        .collect();
    for round in 0..ROUNDS {
        race(&nodes, WRITERS, |writer, store| {
            let mut names = names.clone();
            names.rotate_left(writer * 5 % 12);
            if writer % 2 == 1 {
                names.reverse();
            }
            let transaction = format!("{round}-{writer}");
            let sent = names.iter().flat_map(|(queue, partition)| {
                [
                    message(queue, partition, &transaction),
                    message(queue, &format!("{partition}-{round}"), &transaction),
                    message(&format!("{queue}-{round}"), partition, &transaction),
                ]
            });
            let sent: Vec<_> = sent.collect();
            async move {
                let pushed = push_all(&*store, sent).await;
                assert!(pushed.iter().all(|pushed| !pushed.duplicate));
            }
        })
        .await;
    }
    drop(nodes);
    let messages = i64::try_from(ROUNDS * WRITERS * 36).unwrap();
    assert_eq!(store.messages().await, messages);
    let ordinals = "SELECT q.partitions, max(p.ordinal) FROM queue q \
                    JOIN queue_partition p ON p.queue_id = q.id GROUP BY q.id, q.partitions";
    for (partitions, last) in store.database.pairs(ordinals).await {
        assert_eq!(partitions, last);
    }
    store.saw_no_deadlock().await;
}

/// Groups that meet a queue's partitions for the first time, each node in its own order.
pub(crate) async fn concurrent_pops_do_not_deadlock(store: TestStore) {
    const PARTITIONS: usize = 80;
    let nodes = store.nodes().await;
    // Names against the order in which they are created.
    let partitions: Vec<String> = (0..PARTITIONS).map(|n| format!("p{}", 999 - n)).collect();
    let sent = partitions.iter().map(|name| message("q", name, "a"));
    push_all(&*nodes[0], sent.collect()).await;
    for round in 0..40 {
        let group = format!("g{round}");
        // Creating the group itself would put the nodes one after the other.
        let first = from("q").group(&group).partition(&partitions[0]);
        first.claim(&*nodes[0]).await;
        let start = Arc::new(Barrier::new(3));
        let held_up = store.hold_pops_up().await;
        let mut tasks = JoinSet::new();
        for (node, store) in nodes.iter().enumerate() {
            let (store, start) = (store.clone(), start.clone());
            let mut order = partitions.clone();
            if node == 1 {
                order.reverse();
            }
            let group = group.clone();
            tasks.spawn(async move {
                start.wait().await;
                let mut requests: Vec<_> = order
                    .iter()
                    .map(|name| from("q").group(&group).partition(name))
                    .collect();
                // Sometimes a pop that gives the group cursors in all of them at once.
                if (round + node) % 3 == 0 {
                    requests.insert(3 + round % 10, from("q").group(&group));
                }
                join_all(requests.iter().map(|request| request.pop(&*store))).await
            });
        }
        start.wait().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(held_up);
        let popped = finished(tasks).await.into_iter().flatten();
        let claims = popped.filter_map(|popped| match popped {
            PopOutcome::Claimed(claimed) => Some(claimed),
            PopOutcome::Empty { .. } => None,
        });
        let claims: Vec<Claim> = claims.collect();
        let claimed: BTreeSet<&str> = claims.iter().map(|claim| &*part(claim).partition).collect();
        assert_eq!(claimed.len(), claims.len(), "a partition was leased twice");
    }
    drop(nodes);
    store.saw_no_deadlock().await;
}

pub(crate) async fn concurrent_acks_and_pushes_do_not_deadlock(store: TestStore) {
    const PARTITIONS: usize = 12;
    let nodes = store.nodes().await;
    let partitions: Vec<String> = (0..PARTITIONS).map(|n| format!("p{n}")).collect();
    let everywhere = |transaction: &str| -> Vec<_> {
        let sent = partitions.iter();
        sent.map(|name| message("q", name, transaction)).collect()
    };
    push_all(&*nodes[0], everywhere("0")).await;
    for round in 1..40 {
        let last = (round - 1).to_string();
        let mut claims = Vec::new();
        for group in ["g", "h"] {
            for _ in 0..PARTITIONS {
                claims.push(from("q").group(group).claim(&*nodes[0]).await);
            }
        }
        // Each node pushes and acknowledges.
        race(&nodes, 4, |number, store| {
            let node = number % 2;
            let mut sent = everywhere(&round.to_string());
            let mut own: Vec<Claim> = claims.iter().skip(node).step_by(2).cloned().collect();
            if node == 1 {
                sent.reverse();
                own.reverse();
            }
            let last = last.clone();
            async move {
                if number < 2 {
                    push_all(&*store, sent).await;
                } else {
                    let acks = own.iter().map(|claim| complete(&*store, claim, &last));
                    let outcomes = join_all(acks).await;
                    assert!(outcomes.iter().all(|outcome| *outcome == RELEASED));
                }
            }
        })
        .await;
    }
    push(&*nodes[1], "q", "p0", &["end"]).await;
    drop(nodes);
    store.saw_no_deadlock().await;
}

pub(crate) async fn concurrent_acks_of_a_batch_only_move_forward(store: TestStore) {
    const BATCH: u32 = 12;
    let nodes = store.nodes().await;
    for round in 0..40 {
        let sent = (0..BATCH).map(|number| message("q", "p", &format!("{round}-{number}")));
        push_all(&*nodes[0], sent.collect()).await;
        let claimed = Arc::new(from("q").batch(BATCH).claim(&*nodes[0]).await);
        assert_eq!(names(&claimed)[0], format!("{round}-0"), "it went back");
        let outcomes = race(&nodes, BATCH as usize, |number, store| {
            let (claimed, name) = (claimed.clone(), format!("{round}-{number}"));
            async move { complete(&*store, &claimed, &name).await }
        })
        .await;
        let released = outcomes.iter().filter(|outcome| **outcome == RELEASED);
        assert_eq!(released.count(), 1, "{outcomes:?}");
        assert_eq!(from("q").nothing(&*nodes[1]).await, None, "{outcomes:?}");
    }
}
