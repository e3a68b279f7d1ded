//! Names that are forgotten while a save is made ready.

use std::sync::Arc;

use wakeline_bus::Bus;
use wakeline_testkit::{PostgresDatabase, SqliteDatabase};
use wakeline_wake::{Engine, Limits};

use super::NameCache;
use crate::{
    fact::{Envelope, Fact, Predecessors},
    json,
    store::{
        Facts, SaveOutcome,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};

/// So many names are kept in memory here.
const MOST: usize = 3;

fn fact(kind: &str, roles: &[(&str, &Fact)]) -> Fact {
    let roles = roles.iter().map(|(role, fact)| {
        let one = Predecessors::One(fact.reference.clone());
        ((*role).into(), one)
    });
    let fields = json::parse("{}").unwrap();
    Fact::new(kind.into(), roles.collect(), &fields).unwrap()
}

async fn save(store: &dyn Facts, fact: &Fact) {
    let envelope = Envelope {
        fact: fact.clone(),
        signatures: Vec::new(),
    };
    let bus = Bus::local(Engine::new(Limits::default()));
    let saved = store.save(Arc::from([envelope])).commit(&bus).await;
    let saved = saved.unwrap();
    assert!(matches!(saved, SaveOutcome::Stored { .. }), "{saved:?}");
}

/// `store` keeps few names in memory; `other` is another node.
async fn a_type_is_not_taken_for_unknown(store: &dyn Facts, other: &dyn Facts) {
    let site = fact("Site", &[]);
    save(other, &site).await;
    for kind in ["A", "B", "C"] {
        save(store, &fact(kind, &[])).await;
    }
    // The site's type is learned first, and forgotten for those of the post.
    save(store, &fact("Post", &[("site", &site)])).await;
}

#[tokio::test]
async fn a_stored_type_is_not_taken_for_unknown_on_sqlite() {
    let file = SqliteDatabase::new();
    let sqlite = file.open(&[sqlite::MIGRATIONS]);
    let other = SqliteStore::new(sqlite.clone(), system_clock());
    let mut store = SqliteStore::new(sqlite, system_clock());
    store.names = Arc::new(NameCache::at_most(MOST));
    a_type_is_not_taken_for_unknown(&store, &other).await;
}

#[tokio::test]
async fn a_stored_type_is_not_taken_for_unknown_on_postgres() {
    let database = PostgresDatabase::new(&[postgres::MIGRATIONS]).await;
    let other = PostgresStore::new(database.open(&[postgres::MIGRATIONS]).await);
    let mut store = PostgresStore::new(database.open(&[postgres::MIGRATIONS]).await);
    store.names = Arc::new(NameCache::at_most(MOST));
    a_type_is_not_taken_for_unknown(&store, &other).await;
}
