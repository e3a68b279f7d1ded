//! Sizes that would be too much for a statement's parameters, for a walk over all paths, or for a
//! round trip per fact.

use std::sync::Arc;

use wakeline_feed::fact::{Envelope, Fact, Hash, Predecessors, Reference};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, new_facts};

/// More than a statement can have parameters.
const GRAPH: u64 = 70_000;
const CHAIN: u64 = 10_000;
/// Two predecessors at each level: 2^60 paths.
const LEVELS: u64 = 60;

fn reference(number: u64) -> Reference {
    let mut hash = [0; 64];
    // Not in the order of the hashes.
    hash[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    hash[8..16].copy_from_slice(&number.to_be_bytes());
    Reference {
        kind: "Node".into(),
        hash: Hash(hash),
    }
}

fn node(number: u64, predecessors: &[u64]) -> Envelope {
    let predecessors = predecessors
        .iter()
        .map(|&number| reference(number))
        .collect();
    Envelope::unsigned(Fact {
        reference: reference(number),
        predecessors: vec![("up".into(), Predecessors::Many(predecessors))],
        fields: "{}".into(),
    })
}

async fn save(fixture: &Fixture, nodes: Arc<[Envelope]>) -> usize {
    let new = new_facts(fixture.store.save(nodes).done().await);
    assert!(new.is_sorted_by_key(|(_, seq)| *seq));
    new.len()
}

pub(crate) async fn a_graph_of_many_facts_is_one_save(fixture: Fixture) {
    let graph: Arc<[Envelope]> = (0..GRAPH)
        .map(|number| match number {
            0 => node(0, &[]),
            _ => node(number, &[number / 2, number / 3]),
        })
        .collect();
    let count = usize::try_from(GRAPH).unwrap();
    assert_eq!(save(&fixture, graph.clone()).await, count);
    assert_eq!(save(&fixture, graph).await, 0);
    assert_eq!(fixture.log(20_000).await.len(), count);
}

pub(crate) async fn a_long_chain_has_a_closure(fixture: Fixture) {
    let chain = (0..CHAIN).map(|number| match number {
        0 => node(0, &[]),
        _ => node(number, &[number - 1]),
    });
    save(&fixture, chain.collect()).await;
    // The last hundred facts, each with all of the chain before it.
    let last = (CHAIN - 100..CHAIN).map(reference).collect();
    let seqs = fixture
        .store
        .find(last)
        .await
        .unwrap()
        .into_iter()
        .flatten();
    let closure = fixture.store.closure(seqs.collect()).await.unwrap();
    assert!(closure.is_sorted());
    assert_eq!(closure.len(), usize::try_from(CHAIN).unwrap());
}

pub(crate) async fn many_paths_are_walked_once(fixture: Fixture) {
    let mut nodes = vec![node(0, &[]), node(1, &[])];
    for level in 1..LEVELS {
        let below = [2 * level - 2, 2 * level - 1];
        nodes.extend([node(2 * level, &below), node(2 * level + 1, &below)]);
    }
    let count = nodes.len();
    let top = nodes[count - 1].fact.clone();
    save(&fixture, nodes.into()).await;
    let closure = fixture.store.closure(vec![fixture.seq(&top).await]).await;
    assert_eq!(closure.unwrap().len(), count - 1);
}
