//! Saves that arrived together as one call: each fact once, as arrays for the database's function.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::{
    fact::{Hash, Signature},
    store::{
        SaveOutcome, Seq,
        prepared::{PreparedEdge, PreparedFact, PreparedSave, edge_reference},
    },
};

/// No type has this id: a fact of an unknown type is not found.
const NO_KIND: i32 = 0;

type Key = (i32, Hash);

/// Places count from one in the database.
#[derive(Default)]
pub(super) struct SaveBatch<'a> {
    pub(super) kinds: Vec<i32>,
    pub(super) hashes: Vec<&'a [u8]>,
    pub(super) fields: Vec<&'a str>,
    pub(super) predecessors: Vec<&'a str>,
    /// The places by hash.
    pub(super) sorted: Vec<i32>,
    pub(super) outside_kinds: Vec<i32>,
    pub(super) outside_hashes: Vec<&'a [u8]>,
    pub(super) edge_successors: Vec<i32>,
    pub(super) edge_roles: Vec<i32>,
    /// Negative: outside.
    pub(super) edge_predecessors: Vec<i32>,
    pub(super) key_digests: Vec<Vec<u8>>,
    pub(super) keys: Vec<&'a str>,
    pub(super) signed: Vec<i32>,
    pub(super) signers: Vec<i32>,
    pub(super) signatures: Vec<&'a str>,
    saves: Vec<&'a PreparedSave>,
    /// Of the facts and of those outside.
    places: HashMap<Key, usize>,
    outside: HashMap<Key, usize>,
}

impl<'a> SaveBatch<'a> {
    pub(super) fn of(saves: impl Iterator<Item = &'a PreparedSave>) -> Self {
        let mut batch = Self::default();
        let mut signatures = Vec::new();
        for save in saves {
            for (envelope, fact) in save.envelopes.iter().zip(&*save.facts) {
                let place = batch.add(envelope.fact.reference.hash, &envelope.fact, fact);
                signatures.extend(envelope.signatures.iter().map(|one| (place, one)));
            }
            batch.saves.push(save);
        }
        batch.sort();
        batch.sign(signatures);
        batch
    }

    fn add(&mut self, hash: Hash, fact: &'a crate::fact::Fact, ready: &'a PreparedFact) -> usize {
        let key = (ready.kind, hash);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        let place = self.kinds.len();
        for edge in &ready.edges {
            let predecessor = match self.places.get(&key_of(edge)) {
                Some(&inside) => number(inside),
                None => -number(self.outside(edge)),
            };
            self.edge_successors.push(number(place));
            self.edge_roles.push(edge.role);
            self.edge_predecessors.push(predecessor);
        }
        self.places.insert(key, place);
        self.kinds.push(ready.kind);
        self.hashes.push(&fact.reference.hash.0);
        self.fields.push(&fact.fields);
        self.predecessors.push(&ready.predecessors);
        place
    }

    fn outside(&mut self, edge: &'a PreparedEdge) -> usize {
        let next = self.outside_kinds.len();
        let place = *self.outside.entry(key_of(edge)).or_insert(next);
        if place == next {
            self.outside_kinds.push(key_of(edge).0);
            self.outside_hashes.push(&edge.hash.0);
        }
        place
    }

    fn sort(&mut self) {
        let mut sorted: Vec<usize> = (0..self.kinds.len()).collect();
        sorted.sort_unstable_by_key(|&place| (self.hashes[place], self.kinds[place]));
        self.sorted = sorted.into_iter().map(number).collect();
    }

    /// By keys and facts in the same order everywhere, as two that add the same wait for each
    /// other.
    fn sign(&mut self, signatures: Vec<(usize, &'a Signature)>) {
        if signatures.is_empty() {
            return;
        }
        let keys: HashSet<&str> = signatures.iter().map(|(_, one)| &*one.key).collect();
        let mut keys: Vec<(Vec<u8>, &str)> = keys
            .into_iter()
            .map(|key| (Sha256::digest(key).to_vec(), key))
            .collect();
        keys.sort_unstable();
        let places: HashMap<&str, usize> = (0..)
            .zip(&keys)
            .map(|(place, (_, key))| (*key, place))
            .collect();
        (self.key_digests, self.keys) = keys.into_iter().unzip();
        let mut signed: Vec<_> = signatures
            .into_iter()
            .map(|(fact, one)| (fact, places[&*one.key], &*one.signature))
            .collect();
        signed.sort_by_key(|&(fact, key, _)| (self.hashes[fact], self.kinds[fact], key));
        signed.dedup_by_key(|&mut (fact, key, _)| (fact, key));
        for (fact, key, signature) in signed {
            self.signed.push(number(fact));
            self.signers.push(number(key));
            self.signatures.push(signature);
        }
    }

    /// The facts that each save has added: a fact is new to the first save that has it.
    pub(super) fn saved(&self, known: &[Option<Seq>], at: &[Seq]) -> Vec<SaveOutcome> {
        let mut is_new: Vec<bool> = known.iter().map(Option::is_none).collect();
        let save = |save: &&PreparedSave| {
            let mut new = Vec::new();
            for (sent, (envelope, fact)) in save.envelopes.iter().zip(&*save.facts).enumerate() {
                let place = self.places[&(fact.kind, envelope.fact.reference.hash)];
                if std::mem::take(&mut is_new[place]) {
                    new.push((sent, at[place]));
                }
            }
            SaveOutcome::Stored { new }
        };
        self.saves.iter().map(save).collect()
    }

    /// The saves to refuse, decided one after the other, so that none builds on a refused one.
    pub(super) fn refused(
        &self,
        known: &[Option<Seq>],
        outside: &[Option<Seq>],
    ) -> Vec<Option<SaveOutcome>> {
        let mut is_there: Vec<bool> = known.iter().map(Option::is_some).collect();
        let refuse = |save: &&PreparedSave| {
            let mut added = Vec::new();
            for (envelope, fact) in save.envelopes.iter().zip(&*save.facts) {
                let place = self.places[&(fact.kind, envelope.fact.reference.hash)];
                if is_there[place] {
                    continue;
                }
                let missing = fact.edges.iter().filter(|edge| {
                    let key = key_of(edge);
                    let is_inside = self.places.get(&key).is_some_and(|&one| is_there[one]);
                    let found = self.outside.get(&key).and_then(|&one| outside[one]);
                    !is_inside && found.is_none()
                });
                if let Some(first) = missing.min_by_key(|edge| edge.index) {
                    for place in added {
                        is_there[place] = false;
                    }
                    let predecessor = edge_reference(&envelope.fact, first);
                    return Some(SaveOutcome::Missing { predecessor });
                }
                is_there[place] = true;
                added.push(place);
            }
            None
        };
        self.saves.iter().map(refuse).collect()
    }
}

fn key_of(edge: &PreparedEdge) -> Key {
    (edge.kind.unwrap_or(NO_KIND), edge.hash)
}

fn number(place: usize) -> i32 {
    i32::try_from(place + 1).expect("what is in memory can be counted")
}
