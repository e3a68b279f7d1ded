//! Random sequences of saves on two nodes, checked against the model after each.

use std::{collections::BTreeSet, sync::Arc};

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom, seq::SliceRandom};
use wakeline_feed::{
    fact::{Envelope, Fact, Reference},
    store::{SaveOutcome, Store},
};
use wakeline_testkit::CommitAlone;

use crate::{
    fixture::{Fixture, many, one, read_log, signed, with_lists},
    model::{Model, ModelOutcome, predecessors},
};

const SEQUENCES: usize = 6;
const STEPS: usize = 40;
const POOL: usize = 24;
const KINDS: [&str; 3] = ["Site", "Post", "Comment"];
const ROLES: [&str; 3] = ["up", "others", "site"];
const KEYS: [&str; 3] = ["anna", "ben", "carl"];

pub(crate) async fn random_sequences_follow_the_model(fixture: Fixture) {
    let given = std::env::var("WAKELINE_SEED").ok();
    let given: Option<u64> = given.map(|seed| seed.parse().unwrap());
    let stores = [fixture.store.clone(), fixture.database.store().await];
    for number in 0..if given.is_some() { 1 } else { SEQUENCES } {
        let seed = given.unwrap_or_else(rand::random);
        eprintln!("WAKELINE_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut sequence = Sequence {
            fixture: &fixture,
            stores: &stores,
            pool: pool(&mut random, number),
            random,
            begins: fixture.store.horizon().await.unwrap().settled,
            model: Model::default(),
        };
        for _ in 0..STEPS {
            sequence.step().await;
            sequence.check().await;
        }
    }
}

/// Facts that name others of the pool before them.
fn pool(random: &mut StdRng, number: usize) -> Vec<Fact> {
    let mut pool: Vec<Fact> = Vec::new();
    for place in 0..POOL {
        let mut roles = Vec::new();
        for role in ROLES.iter().take(random.random_range(0..=ROLES.len())) {
            let Some(first) = pool.choose(random) else {
                continue;
            };
            let second = pool.choose(random).expect("there is one");
            let under = match random.random_range(0..4) {
                0 => many(&[]),
                1 => many(&[first, second]),
                _ => one(first),
            };
            roles.push((*role, under));
        }
        let kind = KINDS.choose(random).expect("there are some");
        let made = with_lists(kind, &format!("{number} {place}"), &roles);
        pool.push(made);
    }
    pool
}

struct Sequence<'a> {
    fixture: &'a Fixture,
    stores: &'a [Arc<dyn Store>; 2],
    pool: Vec<Fact>,
    random: StdRng,
    /// The log of this sequence is after this seq.
    begins: i64,
    model: Model,
}

impl Sequence<'_> {
    async fn step(&mut self) {
        let envelopes = self.envelopes();
        let store = &self.stores[self.random.random_range(0..2)];
        let outcome = match store.save(envelopes.clone().into()).done().await {
            SaveOutcome::Stored { new } => {
                ModelOutcome::New(new.into_iter().map(|(index, _)| index).collect())
            }
            SaveOutcome::Missing { predecessor } => ModelOutcome::Missing(predecessor),
        };
        assert_eq!(outcome, self.model.save(&envelopes));
    }

    /// Some of the pool, with their predecessors or without, and now and then in a wrong order.
    fn envelopes(&mut self) -> Vec<Envelope> {
        let mut chosen = BTreeSet::new();
        for _ in 0..self.random.random_range(0..4) {
            chosen.insert(self.random.random_range(0..POOL));
        }
        if self.random.random_bool(0.7) {
            for place in (0..POOL).rev() {
                if chosen.contains(&place) {
                    let needed = predecessors(&self.pool[place]);
                    chosen.extend(needed.map(|one| self.place(one)).collect::<Vec<_>>());
                }
            }
        }
        let mut chosen: Vec<usize> = chosen.into_iter().collect();
        if self.random.random_bool(0.1) {
            chosen.shuffle(&mut self.random);
        }
        let mut envelopes = Vec::new();
        for place in chosen {
            let keys: Vec<&str> = KEYS
                .into_iter()
                .filter(|_| self.random.random_bool(0.1))
                .collect();
            envelopes.push(signed(&self.pool[place], &keys));
        }
        envelopes
    }

    fn place(&self, reference: &Reference) -> usize {
        let place = self
            .pool
            .iter()
            .position(|fact| fact.reference == *reference);
        place.expect("it is of the pool")
    }

    async fn check(&mut self) {
        let store = &self.stores[self.random.random_range(0..2)];
        let all: Vec<_> = self
            .pool
            .iter()
            .map(|fact| fact.reference.clone())
            .collect();
        let found = store.find(all.clone()).await.unwrap();
        for (reference, at) in all.iter().zip(&found) {
            assert_eq!(at.is_some(), self.model.knows(reference));
        }
        let (log, _) = read_log(&**store, self.begins, 5).await;
        let logged: Vec<_> = log.iter().map(|entry| &entry.reference).collect();
        let expected: Vec<_> = self
            .model
            .facts
            .iter()
            .map(|fact| &fact.reference)
            .collect();
        assert_eq!(logged, expected);
        let at: Vec<_> = log.iter().map(|entry| entry.seq).collect();
        let stored = store.facts(at.clone()).await.unwrap();
        assert_eq!(stored.len(), at.len());
        for (stored, expected) in stored.iter().zip(&self.model.facts) {
            assert_eq!(stored.fact, *expected);
            let signers = stored.signatures.iter().map(|one| one.key.to_string());
            let expected = &self.model.signers[&expected.reference];
            assert_eq!(signers.collect::<BTreeSet<_>>(), *expected);
        }
        let Some(entry) = log.choose(&mut self.random) else {
            return;
        };
        let closure = store.closure(vec![entry.seq]).await.unwrap();
        let closure = store.facts(closure).await.unwrap();
        let closure: BTreeSet<_> = closure.into_iter().map(|one| one.fact.reference).collect();
        assert_eq!(closure, self.model.closure(&entry.reference));
        assert_eq!(self.fixture.find(&self.pool[0]).await, found[0]);
    }
}
