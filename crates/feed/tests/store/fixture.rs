//! What a case begins with: a store, and short words for facts and steps.

use std::{collections::BTreeSet, sync::Arc};

use sha2::{Digest, Sha512};
use tokio::{sync::watch, task::JoinHandle};
use wakeline_feed::{
    fact::{Envelope, Fact, Hash, Predecessors, Reference, Roles, Signature},
    json,
    store::{LogEntry, SaveOutcome, Seq, StoredFact},
};
use wakeline_testkit::{CommitAlone, DatabaseKind};

use crate::database::{Database, Store};

pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Store>,
}

impl Fixture {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        Self::new(Database::open(kind).await).await
    }

    pub(crate) async fn new(database: Database) -> Self {
        Self {
            store: database.store().await,
            database,
        }
    }

    pub(crate) async fn save(&self, facts: &[&Fact]) -> SaveOutcome {
        save(&*self.store, facts).await
    }

    /// Which of the facts that were sent are new.
    pub(crate) async fn new_ones(&self, facts: &[&Fact]) -> Vec<usize> {
        match self.save(facts).await {
            SaveOutcome::Stored { new } => new.into_iter().map(|(sent, _)| sent).collect(),
            refused => panic!("{refused:?}"),
        }
    }

    pub(crate) async fn find(&self, fact: &Fact) -> Option<Seq> {
        let found = self.store.find(vec![fact.reference.clone()]).await;
        found.unwrap()[0]
    }

    /// Where a fact is that is stored.
    pub(crate) async fn at(&self, fact: &Fact) -> Seq {
        self.find(fact).await.expect("it is stored")
    }

    pub(crate) async fn stored(&self, fact: &Fact) -> StoredFact {
        let at = self.at(fact).await;
        self.store.facts(vec![at]).await.unwrap().remove(0)
    }

    /// All of it, in pages.
    pub(crate) async fn log(&self, limit: usize) -> Vec<LogEntry> {
        read_log(&*self.store, 0, limit).await.0
    }
}

/// Reads the log beside a case, on a node of its own.
pub(crate) struct LogFollower {
    is_over: watch::Sender<bool>,
    reading: JoinHandle<Vec<LogEntry>>,
}

impl LogFollower {
    pub(crate) async fn start(fixture: &Fixture) -> Self {
        let store = fixture.database.store().await;
        let (is_over, mut ending) = watch::channel(false);
        let reading = tokio::spawn(async move {
            let (mut seen, mut at) = (Vec::new(), 0);
            loop {
                let is_over = *ending.borrow_and_update();
                let (entries, to) = read_log(&*store, at, 7).await;
                seen.extend(entries);
                at = to;
                if is_over {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        });
        Self { is_over, reading }
    }

    /// What it has read when nothing more is saved; each fact came once, in order.
    pub(crate) async fn finish(self) -> BTreeSet<Reference> {
        self.is_over.send_replace(true);
        let seen = self.reading.await.unwrap();
        assert!(seen.is_sorted_by(|a, b| a.seq < b.seq));
        let count = seen.len();
        let seen: BTreeSet<Reference> = seen.into_iter().map(|entry| entry.reference).collect();
        assert_eq!(seen.len(), count);
        seen
    }
}

pub(crate) async fn save(store: &dyn Store, facts: &[&Fact]) -> SaveOutcome {
    let envelopes = facts.iter().map(|fact| envelope(fact)).collect();
    store.save(envelopes).commit_alone().await.unwrap()
}

/// From a seq on until nothing more comes, and how far that is.
pub(crate) async fn read_log(
    store: &dyn Store,
    mut after: Seq,
    limit: usize,
) -> (Vec<LogEntry>, Seq) {
    let mut entries = Vec::new();
    loop {
        let page = store.log(after, limit).await.unwrap();
        assert!(page.entries.len() <= limit);
        assert!(page.to >= after && page.last >= page.to);
        let is_end = page.entries.len() < limit;
        entries.extend(page.entries);
        after = page.to;
        if is_end {
            return (entries, after);
        }
    }
}

pub(crate) fn envelope(fact: &Fact) -> Envelope {
    Envelope {
        fact: fact.clone(),
        signatures: Vec::new(),
    }
}

pub(crate) fn signed(fact: &Fact, keys: &[&str]) -> Envelope {
    let signatures = keys.iter().map(|key| Signature {
        key: (*key).into(),
        signature: format!("by {key}").into(),
    });
    Envelope {
        fact: fact.clone(),
        signatures: signatures.collect(),
    }
}

/// A fact that is known by its type and name. Its hash is none that a client would find.
pub(crate) fn fact(kind: &str, name: &str, predecessors: &[(&str, Predecessors)]) -> Fact {
    let predecessors = predecessors
        .iter()
        .map(|(role, predecessors)| ((*role).into(), predecessors.clone()));
    let mut predecessors: Roles = predecessors.collect();
    predecessors.sort_by(|(one, _), (other, _)| json::compare(one, other));
    Fact {
        reference: Reference {
            kind: kind.into(),
            hash: Hash(Sha512::digest(name).into()),
        },
        predecessors,
        fields: format!(r#"{{"name":"{name}"}}"#).into(),
    }
}

pub(crate) fn one(fact: &Fact) -> Predecessors {
    Predecessors::One(fact.reference.clone())
}

pub(crate) fn many(facts: &[&Fact]) -> Predecessors {
    Predecessors::Many(facts.iter().map(|fact| fact.reference.clone()).collect())
}

pub(crate) fn missing(fact: &Fact) -> SaveOutcome {
    SaveOutcome::Missing {
        predecessor: fact.reference.clone(),
    }
}
