//! The store as a list in memory.

use std::collections::{BTreeMap, BTreeSet};

use wakeline_feed::fact::{Envelope, Fact, Reference};

/// The outcome of a save, without seqs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ModelOutcome {
    New(Vec<usize>),
    Missing(Reference),
}

#[derive(Default)]
pub(crate) struct Model {
    /// In the order of the log.
    pub(crate) facts: Vec<Fact>,
    pub(crate) signers: BTreeMap<Reference, BTreeSet<String>>,
}

impl Model {
    pub(crate) fn knows(&self, reference: &Reference) -> bool {
        self.facts.iter().any(|fact| fact.reference == *reference)
    }

    pub(crate) fn save(&mut self, envelopes: &[Envelope]) -> ModelOutcome {
        let before = self.facts.len();
        let mut new = Vec::new();
        for (place, envelope) in envelopes.iter().enumerate() {
            let fact = &envelope.fact;
            if self.knows(&fact.reference) {
                continue;
            }
            for predecessor in predecessors(fact) {
                if !self.knows(predecessor) {
                    self.facts.truncate(before);
                    return ModelOutcome::Missing(predecessor.clone());
                }
            }
            self.facts.push(fact.clone());
            new.push(place);
        }
        for envelope in envelopes {
            let keys = envelope.signatures.iter().map(|one| one.key.to_string());
            let signers = self.signers.entry(envelope.fact.reference.clone());
            signers.or_default().extend(keys);
        }
        ModelOutcome::New(new)
    }

    /// It and all its ancestors.
    pub(crate) fn closure(&self, of: &Reference) -> BTreeSet<Reference> {
        let mut closure = BTreeSet::new();
        let mut open = vec![of.clone()];
        while let Some(next) = open.pop() {
            let fact = self.facts.iter().find(|fact| fact.reference == next);
            open.extend(predecessors(fact.expect("it is known")).cloned());
            closure.insert(next);
        }
        closure
    }
}

pub(crate) fn predecessors(fact: &Fact) -> impl Iterator<Item = &Reference> {
    fact.predecessors
        .iter()
        .flat_map(|(_, predecessors)| predecessors.references())
}
