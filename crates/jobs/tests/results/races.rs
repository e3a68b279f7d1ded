//! Two nodes at once.

use std::{collections::HashMap, sync::Arc};

use tokio::sync::Barrier;
use wakeline_jobs::results::chunks::CHUNK_BYTES;
use wakeline_testkit::CommitAlone;

use crate::backend::{LONG, TestNode, begin, found, key, put};

const CALLERS: usize = 50;

pub(crate) async fn one_of_fifty_callers_on_two_nodes_gets_the_lock(node: TestNode) {
    let nodes = [node.node.clone(), node.backend.node().await];
    for round in 0..5 {
        let hash = format!("round {round}");
        let start = Arc::new(Barrier::new(CALLERS));
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (node, start) = (nodes[caller % 2].clone(), start.clone());
                let key = key(&hash);
                tokio::spawn(async move {
                    start.wait().await;
                    begin(&*node, &key, LONG).await
                })
            })
            .collect();
        let mut asked = 0;
        for caller in callers {
            asked += usize::from(caller.await.unwrap());
        }
        assert_eq!(asked, 1);
    }
}

pub(crate) async fn two_nodes_that_lock_the_same_keys_in_opposite_order_do_not_fail(
    node: TestNode,
) {
    const KEYS: usize = 200;
    let start = Arc::new(Barrier::new(2 * KEYS));
    let mut callers = Vec::new();
    for is_reversed in [false, true] {
        let node = node.backend.node().await;
        let mut hashes: Vec<usize> = (0..KEYS).collect();
        if is_reversed {
            hashes.reverse();
        }
        for hash in hashes {
            let (node, start) = (node.clone(), start.clone());
            callers.push(tokio::spawn(async move {
                start.wait().await;
                let key = key(&hash.to_string());
                (hash, begin(&*node, &key, LONG).await)
            }));
        }
    }
    let mut asked: HashMap<usize, usize> = HashMap::new();
    for caller in callers {
        let (hash, has_asked) = caller.await.unwrap();
        *asked.entry(hash).or_default() += usize::from(has_asked);
    }
    assert_eq!(asked.len(), KEYS);
    assert!(asked.values().all(|times| *times == 1), "{asked:?}");
}

pub(crate) async fn a_reader_that_comes_during_the_answer_does_not_get_the_lock(here: TestNode) {
    let there = here.backend.node().await;
    for round in 0..5 {
        let key = key(&format!("round {round}"));
        assert!(begin(&*here, &key, LONG).await);
        let start = Arc::new(Barrier::new(11));
        let readers: Vec<_> = (0..10)
            .map(|_| {
                let (node, key, start) = (there.clone(), key.clone(), start.clone());
                tokio::spawn(async move {
                    start.wait().await;
                    // Before the answer is stored, meanwhile, and after it.
                    let mut answered = false;
                    while !answered {
                        answered = found(&*node, &key).await.is_some();
                        assert!(!begin(&*node, &key, LONG).await);
                    }
                })
            })
            .collect();
        start.wait().await;
        put(&*here, &key, "one", LONG).await;
        for reader in readers {
            reader.await.unwrap();
        }
    }
}

pub(crate) async fn a_large_answer_that_is_replaced_constantly_is_read_whole(node: TestNode) {
    const WRITERS: u8 = 4;
    const ROUNDS: usize = 6;
    // Each answer repeats one byte: a mixture of two would show.
    let body = |writer: u8| vec![writer; (2 + usize::from(writer) % 3) * CHUNK_BYTES + 1];
    let nodes = [node.node.clone(), node.backend.node().await];
    put(&*nodes[0], &key("a"), body(0), LONG).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let node = nodes[usize::from(writer) % 2].clone();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    put(&*node, &key("a"), body(writer), LONG).await;
                    node.sweep().done().await;
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..8)
        .map(|reader| {
            let node = nodes[reader % 2].clone();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    let read = found(&*node, &key("a")).await.unwrap();
                    assert!(read == body(read[0]));
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(readers) {
        task.await.unwrap();
    }
}
