//! What a case begins with: a store, and short words for facts and steps.

use std::sync::Arc;

use sha2::{Digest, Sha512};
use wakeline_feed::{
    fact::{Envelope, Fact, Hash, Predecessors, Reference, Signature},
    store::{LogEntry, Position, Saved, Stored},
};
use wakeline_testkit::local_bus;

use crate::database::{Database, Steps};

pub(crate) struct Ground {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Steps>,
}

impl Ground {
    pub(crate) async fn new(database: Database) -> Self {
        Self {
            store: database.store().await,
            database,
        }
    }

    pub(crate) async fn save(&self, facts: &[&Fact]) -> Saved {
        save(&*self.store, facts).await
    }

    /// Which of the facts that were sent are new.
    pub(crate) async fn new_ones(&self, facts: &[&Fact]) -> Vec<usize> {
        match self.save(facts).await {
            Saved::Stored { new } => new.into_iter().map(|(sent, _)| sent).collect(),
            refused => panic!("{refused:?}"),
        }
    }

    pub(crate) async fn find(&self, fact: &Fact) -> Option<Position> {
        let found = self.store.find(vec![fact.reference.clone()]).await;
        found.unwrap()[0]
    }

    /// Where a fact is that is stored.
    pub(crate) async fn at(&self, fact: &Fact) -> Position {
        self.find(fact).await.expect("it is stored")
    }

    pub(crate) async fn stored(&self, fact: &Fact) -> Stored {
        let at = self.at(fact).await;
        self.store.facts(vec![at]).await.unwrap().remove(0)
    }

    /// All of it, in pages.
    pub(crate) async fn log(&self, limit: usize) -> Vec<LogEntry> {
        read_log(&*self.store, 0, limit).await.0
    }
}

pub(crate) async fn save(store: &dyn Steps, facts: &[&Fact]) -> Saved {
    let envelopes = facts.iter().map(|fact| envelope(fact)).collect();
    store.save(envelopes).commit(&local_bus()).await.unwrap()
}

/// From a position on until nothing more comes, and how far that is.
pub(crate) async fn read_log(
    store: &dyn Steps,
    mut after: Position,
    limit: usize,
) -> (Vec<LogEntry>, Position) {
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
    Fact {
        reference: Reference {
            kind: kind.into(),
            hash: Hash(Sha512::digest(name).into()),
        },
        predecessors: predecessors.collect(),
        fields: format!(r#"{{"name":"{name}"}}"#).into(),
    }
}

pub(crate) fn one(fact: &Fact) -> Predecessors {
    Predecessors::One(fact.reference.clone())
}

pub(crate) fn many(facts: &[&Fact]) -> Predecessors {
    Predecessors::Many(facts.iter().map(|fact| fact.reference.clone()).collect())
}

pub(crate) fn missing(fact: &Fact) -> Saved {
    Saved::Missing {
        predecessor: fact.reference.clone(),
    }
}
