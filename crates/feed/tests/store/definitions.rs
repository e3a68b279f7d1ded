//! Definitions of feeds.

use wakeline_feed::store::{Definition, REFRESHED_AFTER};
use wakeline_testkit::local_bus;

use crate::{
    database::Database,
    ground::{Ground, fact},
};

fn definition(hash: &str) -> Definition {
    Definition {
        hash: hash.into(),
        text: "(given: Site) { }".into(),
        given: ["b", "a"]
            .map(|name| fact("Site", name, &[]).reference)
            .into(),
        owner: None,
    }
}

pub(crate) async fn it_is_as_it_was_defined(database: Database) {
    let ground = Ground::new(database).await;
    let plain = definition("plain");
    let owned = Definition {
        given: Vec::new(),
        owner: Some(fact("Jinaga.User", "anna", &[]).reference),
        ..definition("owned")
    };
    let all = vec![plain.clone(), owned.clone()];
    ground.store.define(all).commit(&local_bus()).await.unwrap();
    let other = ground.database.store().await;
    for expected in [plain, owned] {
        let hash = expected.hash.to_string();
        let found = other.definition(hash).await.unwrap();
        assert_eq!(found.map(|found| found.definition), Some(expected));
    }
    for nobodys in ["", "other", "with\0nul"] {
        assert_eq!(other.definition(nobodys.into()).await.unwrap(), None);
    }
}

pub(crate) async fn what_was_defined_first_stays(database: Database) {
    let ground = Ground::new(database).await;
    let first = definition("a");
    let second = Definition {
        owner: Some(fact("Jinaga.User", "mallory", &[]).reference),
        ..definition("a")
    };
    ground
        .store
        .define(vec![first.clone(), second.clone()])
        .commit(&local_bus())
        .await
        .unwrap();
    ground
        .store
        .define(vec![second])
        .commit(&local_bus())
        .await
        .unwrap();
    let kept = ground.store.definition("a".into()).await.unwrap();
    assert_eq!(kept.unwrap().definition, first);
}

/// Those that are there.
async fn known(ground: &Ground, hashes: &[&str]) -> Vec<bool> {
    let mut known = Vec::new();
    for hash in hashes {
        let count = format!("feed_definition WHERE hash = '{hash}'");
        known.push(ground.database.count(&count).await == 1);
    }
    known
}

async fn is_stale(ground: &Ground) -> bool {
    let found = ground.store.definition("a".into()).await;
    found.unwrap().unwrap().is_stale
}

async fn refresh(ground: &Ground) {
    let refreshed = ground.store.refresh_definition("a".into());
    refreshed.commit(&local_bus()).await.unwrap();
}

async fn forget(ground: &Ground) -> u64 {
    let since = ground.database.now().await - 3 * REFRESHED_AFTER;
    ground
        .store
        .forget_definitions(since)
        .commit(&local_bus())
        .await
        .unwrap()
}

pub(crate) async fn what_is_not_used_is_forgotten(database: Database) {
    let ground = Ground::new(database).await;
    let old = vec![definition("a"), definition("b")];
    ground.store.define(old).commit(&local_bus()).await.unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    ground
        .store
        .define(vec![definition("c")])
        .commit(&local_bus())
        .await
        .unwrap();
    assert_eq!(forget(&ground).await, 0);
    ground.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&ground).await, 2);
    assert_eq!(known(&ground, &["a", "b", "c"]).await, [false, false, true]);
}

pub(crate) async fn what_is_asked_for_is_kept(database: Database) {
    let ground = Ground::new(database).await;
    let all = vec![definition("a"), definition("b")];
    ground.store.define(all).commit(&local_bus()).await.unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    refresh(&ground).await;
    ground.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&ground).await, 1);
    assert_eq!(known(&ground, &["a", "b"]).await, [true, false]);
}

pub(crate) async fn what_is_defined_again_is_kept(database: Database) {
    let ground = Ground::new(database).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&local_bus())
        .await
        .unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&local_bus())
        .await
        .unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&ground).await, 0);
}

/// Only a write may write: what reads is dropped with its caller.
pub(crate) async fn reading_a_definition_writes_nothing(database: Database) {
    let ground = Ground::new(database).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&local_bus())
        .await
        .unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    let used = "SELECT used FROM feed_definition";
    let before = ground.database.number(used).await;
    assert!(is_stale(&ground).await);
    assert_eq!(ground.database.number(used).await, before);
}

pub(crate) async fn asking_writes_at_most_once_a_day(database: Database) {
    let ground = Ground::new(database).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&local_bus())
        .await
        .unwrap();
    let used = "SELECT used FROM feed_definition";
    ground.database.pass(REFRESHED_AFTER / 2).await;
    let before = ground.database.number(used).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&local_bus())
        .await
        .unwrap();
    assert!(!is_stale(&ground).await);
    refresh(&ground).await;
    assert_eq!(ground.database.number(used).await, before);
    ground.database.pass(REFRESHED_AFTER).await;
    assert!(is_stale(&ground).await);
    refresh(&ground).await;
    let now = ground.database.now().await;
    let age = now - ground.database.number(used).await;
    assert!(age < REFRESHED_AFTER / 2, "{age}");
}
