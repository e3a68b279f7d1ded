//! Two nodes at once, started together.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{sync::Barrier, task::JoinSet, time::timeout};
use wakeline_queue::{
    ack::{AckOutcome, AckStatus},
    claim::{Claim, PopOutcome},
};

use crate::{
    calls::{RELEASED, from, message, names, outcome, part, push, push_all},
    test_store::TestStore,
};

/// Nothing here takes this long; what does, hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(100);

pub(crate) async fn finished(tasks: JoinSet<()>) {
    timeout(HANGS, tasks.join_all())
        .await
        .expect("a race hangs");
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
    let start = Arc::new(Barrier::new(8));
    let mut tasks = JoinSet::new();
    for worker in 0..8 {
        let store = nodes[worker % 2].clone();
        let (held, seen, start) = (held.clone(), seen.clone(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
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
                assert!(
                    held.lock().unwrap().insert(partition.clone()),
                    "two live leases on {partition}"
                );
                tokio::time::sleep(Duration::from_millis(1)).await;
                let name = names(&claimed)[0];
                let number = name.parse().unwrap();
                let order = partition.clone();
                seen.lock().unwrap().entry(order).or_default().push(number);
                assert!(held.lock().unwrap().remove(&partition));
                let done = outcome(&*store, &claimed, name, AckStatus::Completed).await;
                assert_eq!(done, RELEASED);
            }
        });
    }
    finished(tasks).await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), PARTITIONS);
    for order in seen.values() {
        assert_eq!(*order, (0..MESSAGES).collect::<Vec<_>>());
    }
}

pub(crate) async fn one_of_many_same_transaction_ids_is_stored(store: TestStore) {
    const WRITERS: usize = 8;
    let nodes = store.nodes().await;
    for round in 0..25 {
        let start = Arc::new(Barrier::new(WRITERS));
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let (store, start) = (nodes[writer % 2].clone(), start.clone());
            tasks.spawn(async move {
                let partition = format!("p{}", round / 5);
                let own = format!("{round}-{writer}");
                let sent = vec![
                    message("q", &partition, &own),
                    message("q", &partition, &format!("{round}")),
                ];
                start.wait().await;
                push_all(&*store, sent).await.remove(1)
            });
        }
        let pushed = timeout(HANGS, tasks.join_all())
            .await
            .expect("a push hangs");
        let stored: Vec<_> = pushed.iter().filter(|pushed| !pushed.duplicate).collect();
        assert_eq!(stored.len(), 1, "{pushed:?}");
        assert!(pushed.iter().all(|pushed| pushed.id == stored[0].id));
    }
    let count = i64::try_from(25 * (WRITERS + 1)).unwrap();
    assert_eq!(store.messages().await, count);
}

/// Known and new queues and partitions, each node in its own order.
pub(crate) async fn pushes_across_each_other_do_not_fail(store: TestStore) {
    const ROUNDS: usize = 20;
    const WRITERS: usize = 6;
    let nodes = store.nodes().await;
    let names: Vec<(String, String)> = (0..12)
        .map(|number| (format!("q{}", number % 4), format!("p{}", number / 4)))
        .collect();
    for round in 0..ROUNDS {
        let start = Arc::new(Barrier::new(WRITERS));
        let mut tasks = JoinSet::new();
        for writer in 0..WRITERS {
            let (store, start) = (nodes[writer % 2].clone(), start.clone());
            let mut names = names.clone();
            names.rotate_left(writer * 5 % 12);
            if writer % 2 == 1 {
                names.reverse();
            }
            tasks.spawn(async move {
                let sent = names.iter().flat_map(|(queue, partition)| {
                    let fresh = format!("{queue}-{round}");
                    let transaction = format!("{round}-{writer}");
                    [
                        message(queue, partition, &transaction),
                        message(queue, &format!("{partition}-{round}"), &transaction),
                        message(&fresh, partition, &transaction),
                    ]
                });
                let sent: Vec<_> = sent.collect();
                start.wait().await;
                let pushed = push_all(&*store, sent).await;
                assert!(pushed.iter().all(|pushed| !pushed.duplicate));
            });
        }
        finished(tasks).await;
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
pub(crate) async fn pops_across_each_other_do_not_fail(store: TestStore) {
    const PARTITIONS: usize = 80;
    let nodes = store.nodes().await;
    // Names against the order of their making.
    let partitions: Vec<String> = (0..PARTITIONS).map(|n| format!("p{}", 999 - n)).collect();
    let sent = partitions.iter().map(|name| message("q", name, "a"));
    push_all(&*nodes[0], sent.collect()).await;
    for round in 0..40 {
        let group = format!("g{round}");
        // The making of the group itself would put the nodes one after the other.
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
                // Sometimes one that makes all of them known at once.
                if (round + node) % 3 == 0 {
                    requests.insert(3 + round % 10, from("q").group(&group));
                }
                join_all(requests.iter().map(|request| request.pop(&*store))).await
            });
        }
        start.wait().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(held_up);
        let claims: Vec<Claim> = timeout(HANGS, tasks.join_all())
            .await
            .expect("a pop hangs")
            .into_iter()
            .flatten()
            .filter_map(|popped| match popped {
                PopOutcome::Claimed(claimed) => Some(claimed),
                PopOutcome::Empty { .. } => None,
            })
            .collect();
        let claimed: BTreeSet<&str> = claims.iter().map(|claim| &*part(claim).partition).collect();
        assert_eq!(claimed.len(), claims.len(), "a partition was leased twice");
    }
    drop(nodes);
    store.saw_no_deadlock().await;
}

pub(crate) async fn acks_and_pushes_across_each_other_do_not_fail(store: TestStore) {
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
        let (claims, start) = (Arc::new(claims), Arc::new(Barrier::new(4)));
        let mut tasks = JoinSet::new();
        for (node, store) in nodes.iter().enumerate() {
            let mut sent = everywhere(&format!("{round}"));
            if node == 1 {
                sent.reverse();
            }
            let (pushing, ready) = (store.clone(), start.clone());
            tasks.spawn(async move {
                ready.wait().await;
                push_all(&*pushing, sent).await;
            });
            let (store, start) = (store.clone(), start.clone());
            let (claims, last) = (claims.clone(), last.clone());
            tasks.spawn(async move {
                start.wait().await;
                let mut own: Vec<&Claim> = claims.iter().skip(node).step_by(2).collect();
                if node == 1 {
                    own.reverse();
                }
                let acks = own
                    .into_iter()
                    .map(|claim| outcome(&*store, claim, &last, AckStatus::Completed));
                let outcomes: Vec<AckOutcome> = join_all(acks).await;
                assert!(outcomes.iter().all(|outcome| *outcome == RELEASED));
            });
        }
        finished(tasks).await;
    }
    push(&*nodes[1], "q", "p0", &["end"]).await;
    drop(nodes);
    store.saw_no_deadlock().await;
}

pub(crate) async fn acks_of_one_batch_only_move_forward(store: TestStore) {
    const BATCH: u32 = 12;
    let nodes = store.nodes().await;
    for round in 0..40 {
        let sent = (0..BATCH).map(|number| message("q", "p", &format!("{round}-{number}")));
        push_all(&*nodes[0], sent.collect()).await;
        let claimed = Arc::new(from("q").batch(BATCH).claim(&*nodes[0]).await);
        assert_eq!(names(&claimed)[0], format!("{round}-0"), "it went back");
        let start = Arc::new(Barrier::new(BATCH as usize));
        let mut tasks = JoinSet::new();
        for number in 0..BATCH {
            let store = nodes[number as usize % 2].clone();
            let (claimed, start) = (claimed.clone(), start.clone());
            tasks.spawn(async move {
                let name = format!("{round}-{number}");
                start.wait().await;
                outcome(&*store, &claimed, &name, AckStatus::Completed).await
            });
        }
        let outcomes = timeout(HANGS, tasks.join_all())
            .await
            .expect("an ack hangs");
        let released = outcomes.iter().filter(|outcome| **outcome == RELEASED);
        assert_eq!(released.count(), 1, "{outcomes:?}");
        assert_eq!(from("q").nothing(&*nodes[1]).await, None, "{outcomes:?}");
    }
}
