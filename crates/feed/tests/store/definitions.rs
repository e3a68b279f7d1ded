//! Definitions of feeds.

use wakeline_feed::store::{Definition, REFRESHED_AFTER};
use wakeline_testkit::CommitAlone;

use crate::fixture::{Fixture, fact};

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

async fn define(fixture: &Fixture, definitions: Vec<Definition>) {
    let defined = fixture.store.define(definitions);
    defined.commit_alone().await.unwrap();
}

pub(crate) async fn it_is_as_it_was_defined(fixture: Fixture) {
    let plain = definition("plain");
    let owned = Definition {
        given: Vec::new(),
        owner: Some(fact("Jinaga.User", "anna", &[]).reference),
        ..definition("owned")
    };
    define(&fixture, vec![plain.clone(), owned.clone()]).await;
    let other = fixture.database.store().await;
    for expected in [plain, owned] {
        let hash = expected.hash.to_string();
        let found = other.definition(hash).await.unwrap();
        assert_eq!(found.map(|found| found.definition), Some(expected));
    }
    for nobodys in ["", "other", "with\0nul"] {
        assert_eq!(other.definition(nobodys.into()).await.unwrap(), None);
    }
}

pub(crate) async fn what_was_defined_first_stays(fixture: Fixture) {
    let first = definition("a");
    let second = Definition {
        owner: Some(fact("Jinaga.User", "mallory", &[]).reference),
        ..definition("a")
    };
    define(&fixture, vec![first.clone(), second.clone()]).await;
    define(&fixture, vec![second]).await;
    let kept = fixture.store.definition("a".into()).await.unwrap();
    assert_eq!(kept.unwrap().definition, first);
}

/// Those that are there.
async fn known(fixture: &Fixture, hashes: &[&str]) -> Vec<bool> {
    let mut known = Vec::new();
    for hash in hashes {
        let count = format!("feed_definition WHERE hash = '{hash}'");
        known.push(fixture.database.count(&count).await == 1);
    }
    known
}

async fn is_stale(fixture: &Fixture) -> bool {
    let found = fixture.store.definition("a".into()).await;
    found.unwrap().unwrap().is_stale
}

async fn refresh(fixture: &Fixture) {
    let refreshed = fixture.store.refresh_definition("a".into());
    refreshed.commit_alone().await.unwrap();
}

async fn forget(fixture: &Fixture) -> u64 {
    let since = fixture.database.now().await - 3 * REFRESHED_AFTER;
    fixture
        .store
        .forget_definitions(since)
        .commit_alone()
        .await
        .unwrap()
}

pub(crate) async fn what_is_not_used_is_forgotten(fixture: Fixture) {
    define(&fixture, vec![definition("a"), definition("b")]).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    define(&fixture, vec![definition("c")]).await;
    assert_eq!(forget(&fixture).await, 0);
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 2);
    assert_eq!(
        known(&fixture, &["a", "b", "c"]).await,
        [false, false, true]
    );
}

pub(crate) async fn what_is_asked_for_is_kept(fixture: Fixture) {
    define(&fixture, vec![definition("a"), definition("b")]).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    refresh(&fixture).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 1);
    assert_eq!(known(&fixture, &["a", "b"]).await, [true, false]);
}

pub(crate) async fn what_is_defined_again_is_kept(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    define(&fixture, vec![definition("a")]).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 0);
}

/// Only a write may write: what reads is dropped with its caller.
pub(crate) async fn reading_a_definition_writes_nothing(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    fixture.database.pass(2 * REFRESHED_AFTER).await;
    let used = "SELECT used_at FROM feed_definition";
    let before = fixture.database.number(used).await;
    assert!(is_stale(&fixture).await);
    assert_eq!(fixture.database.number(used).await, before);
}

pub(crate) async fn asking_writes_at_most_once_a_day(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    let used = "SELECT used_at FROM feed_definition";
    fixture.database.pass(REFRESHED_AFTER / 2).await;
    let before = fixture.database.number(used).await;
    define(&fixture, vec![definition("a")]).await;
    assert!(!is_stale(&fixture).await);
    refresh(&fixture).await;
    assert_eq!(fixture.database.number(used).await, before);
    fixture.database.pass(REFRESHED_AFTER).await;
    assert!(is_stale(&fixture).await);
    refresh(&fixture).await;
    let now = fixture.database.now().await;
    let age = now - fixture.database.number(used).await;
    assert!(age < REFRESHED_AFTER / 2, "{age}");
}
