//! A store for each case, and short words for saves and reads.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};
use wakeline_feed::{
    fact::{Envelope, Fact, Predecessors, Reference, Signature},
    store::{LogEntry, SaveOutcome, Seq, Store, StoredFact, sqlite::system_clock},
};
use wakeline_testkit::{CommitAlone, DatabaseKind};

use crate::{build::build, database::Database};

pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Store>,
}

impl Fixture {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = Database::open(kind).await;
        Self {
            store: database.store().await,
            database,
        }
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(DatabaseKind::Postgres).await
    }

    pub(crate) async fn save(&self, facts: &[&Fact]) -> SaveOutcome {
        save(&*self.store, facts).await
    }

    /// The indexes of the facts that are new.
    pub(crate) async fn save_new(&self, facts: &[&Fact]) -> Vec<usize> {
        let new = new_facts(self.save(facts).await);
        new.into_iter().map(|(index, _)| index).collect()
    }

    pub(crate) async fn find(&self, fact: &Fact) -> Option<Seq> {
        let found = self.store.find(vec![fact.reference.clone()]).await;
        found.unwrap()[0]
    }

    /// The seq of a stored fact.
    pub(crate) async fn seq(&self, fact: &Fact) -> Seq {
        self.find(fact).await.expect("it is stored")
    }

    pub(crate) async fn stored(&self, fact: &Fact) -> StoredFact {
        let seq = self.seq(fact).await;
        self.store.facts(vec![seq]).await.unwrap().remove(0)
    }

    /// The whole log, in pages.
    pub(crate) async fn log(&self, limit: usize) -> Vec<LogEntry> {
        read_log(&*self.store, 0, limit).await.0
    }

    /// The time by the database's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self.database.is_postgres() {
            true => self.database.number("SELECT feed_now()").await,
            false => system_clock()(),
        }
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
            let (mut all, mut after) = (Vec::new(), 0);
            loop {
                let is_over = *ending.borrow_and_update();
                let (entries, to) = read_log(&*store, after, 7).await;
                all.extend(entries);
                after = to;
                if is_over {
                    return all;
                }
                tokio::task::yield_now().await;
            }
        });
        Self { is_over, reading }
    }

    /// All facts it has read when nothing more is saved; each came once, in order.
    pub(crate) async fn finish(self) -> BTreeSet<Reference> {
        self.is_over.send_replace(true);
        let entries = self.reading.await.unwrap();
        assert!(entries.is_sorted_by(|a, b| a.seq < b.seq));
        let count = entries.len();
        let entries = entries.into_iter().map(|entry| entry.reference);
        let references: BTreeSet<Reference> = entries.collect();
        assert_eq!(references.len(), count);
        references
    }
}

pub(crate) async fn save(store: &dyn Store, facts: &[&Fact]) -> SaveOutcome {
    let envelopes = facts.iter().map(|fact| Envelope::unsigned((*fact).clone()));
    store.save(envelopes.collect()).done().await
}

pub(crate) fn new_facts(saved: SaveOutcome) -> Vec<(usize, Seq)> {
    match saved {
        SaveOutcome::Stored { new } => new,
        refused => panic!("{refused:?}"),
    }
}

/// From a seq on until nothing more follows, and up to where that is.
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

/// A fact with lists of predecessors.
pub(crate) fn with_lists(kind: &str, name: &str, roles: &[(&str, Predecessors)]) -> Fact {
    let roles = roles.iter().map(|(role, of)| ((*role).into(), of.clone()));
    build(kind, json!({ "name": name }), roles.collect())
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
