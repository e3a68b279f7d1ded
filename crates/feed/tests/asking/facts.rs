//! Facts of the tests.

use std::sync::Arc;
use wakeline_testkit::local_bus;

use wakeline_feed::{
    fact::{Envelope, Fact, Predecessors, Reference},
    json,
    store::{SaveOutcome, Seq, Store},
};

/// A fact whose only field is `n`.
pub(crate) fn fact(kind: &str, n: usize, roles: &[(&str, &Fact)]) -> Fact {
    let roles = roles.iter().map(|(role, fact)| {
        let one = Predecessors::One(fact.reference.clone());
        ((*role).into(), one)
    });
    build(kind, &format!("{{\"n\":{n}}}"), roles.collect())
}

pub(crate) fn build(kind: &str, fields: &str, roles: Vec<(Box<str>, Predecessors)>) -> Fact {
    Fact::new(kind.into(), roles, &json::parse(fields).unwrap()).unwrap()
}

/// Saves in the order given, and says where they are.
pub(crate) async fn save(store: &dyn Store, facts: &[Fact]) -> Vec<Seq> {
    for part in facts.chunks(5_000) {
        let envelopes: Arc<[Envelope]> = part
            .iter()
            .map(|fact| Envelope {
                fact: fact.clone(),
                signatures: Vec::new(),
            })
            .collect();
        let saved = store.save(envelopes).commit(&local_bus()).await.unwrap();
        assert!(matches!(saved, SaveOutcome::Stored { .. }), "{saved:?}");
    }
    let references: Vec<Reference> = facts.iter().map(|fact| fact.reference.clone()).collect();
    let found = store.find(references).await.unwrap();
    found.into_iter().map(|at| at.unwrap()).collect()
}
