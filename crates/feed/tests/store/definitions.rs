//! Definitions of feeds.

use wakeline_feed::store::{Definition, REFRESHED_AFTER};

use crate::{
    database::{Database, bus},
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
    ground.store.define(all).commit(&bus()).await.unwrap();
    let other = ground.database.store().await;
    for expected in [plain, owned] {
        let hash = expected.hash.to_string();
        assert_eq!(other.definition(hash).await.unwrap(), Some(expected));
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
        .commit(&bus())
        .await
        .unwrap();
    ground
        .store
        .define(vec![second])
        .commit(&bus())
        .await
        .unwrap();
    let kept = ground.store.definition("a".into()).await.unwrap();
    assert_eq!(kept, Some(first));
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

async fn forget(ground: &Ground) -> u64 {
    let since = ground.database.now().await - 3 * REFRESHED_AFTER;
    ground
        .store
        .forget_definitions(since)
        .commit(&bus())
        .await
        .unwrap()
}

pub(crate) async fn what_is_not_used_is_forgotten(database: Database) {
    let ground = Ground::new(database).await;
    let old = vec![definition("a"), definition("b")];
    ground.store.define(old).commit(&bus()).await.unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    ground
        .store
        .define(vec![definition("c")])
        .commit(&bus())
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
    ground.store.define(all).commit(&bus()).await.unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    ground.store.definition("a".into()).await.unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&ground).await, 1);
    assert_eq!(known(&ground, &["a", "b"]).await, [true, false]);
}

pub(crate) async fn what_is_defined_again_is_kept(database: Database) {
    let ground = Ground::new(database).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&bus())
        .await
        .unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&bus())
        .await
        .unwrap();
    ground.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&ground).await, 0);
}

pub(crate) async fn asking_writes_at_most_once_a_day(database: Database) {
    let ground = Ground::new(database).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&bus())
        .await
        .unwrap();
    let used = "SELECT used FROM feed_definition";
    ground.database.pass(REFRESHED_AFTER / 2).await;
    let before = ground.database.number(used).await;
    ground
        .store
        .define(vec![definition("a")])
        .commit(&bus())
        .await
        .unwrap();
    ground.store.definition("a".into()).await.unwrap();
    assert_eq!(ground.database.number(used).await, before);
    ground.database.pass(REFRESHED_AFTER).await;
    ground.store.definition("a".into()).await.unwrap();
    let now = ground.database.now().await;
    let age = now - ground.database.number(used).await;
    assert!(age < REFRESHED_AFTER / 2, "{age}");
}
