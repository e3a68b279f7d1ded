//! The facts that the cases are about, as the script beside the vectors made them.

use std::collections::HashMap;

use serde_json::{Value, json};
use wakeline_feed::{
    fact::{Envelope, Fact, Reference, record::read_facts},
    policy::{Policies, distribution::Distribution},
    policy_file::PolicyFile,
    specification::{Specification, parser},
    store::{SaveOutcome, Store},
};
use wakeline_testkit::local_bus;

pub(crate) struct CaseFacts {
    pub(crate) cases: Value,
    facts: HashMap<String, Fact>,
}

impl CaseFacts {
    pub(crate) fn read() -> Self {
        let cases: Value = serde_json::from_str(include_str!("../vectors/policies.json")).unwrap();
        let facts = cases["facts"].as_object().unwrap().iter();
        let facts = facts.map(|(name, written)| (name.clone(), fact(written)));
        Self {
            facts: facts.collect(),
            cases,
        }
    }

    pub(crate) fn fact(&self, name: &str) -> &Fact {
        &self.facts[name]
    }

    pub(crate) fn reference(&self, name: &str) -> Reference {
        self.fact(name).reference.clone()
    }

    pub(crate) fn references(&self, names: &[&str]) -> Vec<Reference> {
        names.iter().map(|name| self.reference(name)).collect()
    }

    /// Saves all facts but the one that nobody knows, and those that were left out.
    pub(crate) async fn save(&self, store: &dyn Store, but: &[&str]) {
        let known = self.facts.iter();
        let mut known: Vec<_> = known
            .filter(|(name, _)| *name != "unknown" && !but.contains(&&***name))
            .map(|(_, fact)| fact.clone())
            .collect();
        // Predecessors first: each needs those that it names.
        let mut ordered: Vec<Fact> = Vec::new();
        while !known.is_empty() {
            let (ready, rest): (Vec<_>, Vec<_>) = known.into_iter().partition(|fact| {
                let mut below = fact
                    .predecessors
                    .iter()
                    .flat_map(|(_, one)| one.references());
                below.all(|one| ordered.iter().any(|fact| fact.reference == *one))
            });
            assert!(!ready.is_empty(), "the facts have all their predecessors");
            ordered.extend(ready);
            known = rest;
        }
        save(store, ordered).await;
    }
}

pub(crate) async fn save(store: &dyn Store, facts: Vec<Fact>) -> Vec<(Reference, i64)> {
    let envelopes: Vec<Envelope> = facts
        .iter()
        .map(|fact| Envelope {
            fact: fact.clone(),
            signatures: Vec::new(),
        })
        .collect();
    match store
        .save(envelopes.into())
        .commit(&local_bus())
        .await
        .unwrap()
    {
        SaveOutcome::Stored { new } => new
            .into_iter()
            .map(|(index, at)| (facts[index].reference.clone(), at))
            .collect(),
        SaveOutcome::Missing { predecessor } => panic!("{predecessor} is missing"),
    }
}

/// A fact as JSON has it.
pub(crate) fn fact(written: &Value) -> Fact {
    let body = json!({ "facts": [written] }).to_string();
    read_facts(body.as_bytes(), 1).unwrap().remove(0)
}

/// A new fact.
pub(crate) fn made(kind: &str, predecessors: &[(&str, Reference)], fields: &str) -> Fact {
    use wakeline_feed::{fact::Predecessors, json};
    let roles = predecessors
        .iter()
        .map(|(role, one)| (Box::from(*role), Predecessors::One(one.clone())));
    let fields = json::parse(fields).unwrap();
    Fact::new(kind.into(), roles.collect(), &fields).unwrap()
}

pub(crate) fn specification(text: &str) -> Specification {
    parser::parse(text).unwrap()
}

pub(crate) fn policies(text: &str) -> Policies {
    Policies::new(&PolicyFile::parse(text).unwrap()).unwrap()
}

pub(crate) fn distribution(text: &str) -> Distribution {
    policies(text).distribution
}
