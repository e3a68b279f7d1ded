//! Definitions of feeds.

use wakeline_feed::store::{Definition, REFRESHED_AFTER};
use wakeline_testkit::CommitAlone;

use crate::{facts::fact, fixture::Fixture};

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

/// Lets so many microseconds pass: all definitions become older.
async fn pass(fixture: &Fixture, micros: i64) {
    let sql = format!("UPDATE feed_definition SET used_at = used_at - {micros}");
    fixture.database.execute(&sql).await;
}

async fn define(fixture: &Fixture, definitions: Vec<Definition>) {
    fixture.store.define(definitions).done().await;
}

pub(crate) async fn a_definition_is_read_as_it_was_stored(fixture: Fixture) {
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
    for unknown in ["", "other", "with\0nul"] {
        assert_eq!(other.definition(unknown.into()).await.unwrap(), None);
    }
}

pub(crate) async fn the_first_definition_of_a_hash_stays(fixture: Fixture) {
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

/// Which of them are stored.
async fn are_stored(fixture: &Fixture, hashes: &[&str]) -> Vec<bool> {
    let mut stored = Vec::new();
    for hash in hashes {
        let count = format!("feed_definition WHERE hash = '{hash}'");
        stored.push(fixture.database.count(&count).await == 1);
    }
    stored
}

async fn is_stale(fixture: &Fixture) -> bool {
    let found = fixture.store.definition("a".into()).await;
    found.unwrap().unwrap().is_stale
}

async fn refresh(fixture: &Fixture) {
    fixture.store.refresh_definition("a".into()).done().await;
}

async fn forget(fixture: &Fixture) -> u64 {
    let since = fixture.now().await - 3 * REFRESHED_AFTER;
    fixture.store.forget_definitions(since).done().await
}

pub(crate) async fn unused_definitions_are_forgotten(fixture: Fixture) {
    define(&fixture, vec![definition("a"), definition("b")]).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    define(&fixture, vec![definition("c")]).await;
    assert_eq!(forget(&fixture).await, 0);
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 2);
    let stored = are_stored(&fixture, &["a", "b", "c"]).await;
    assert_eq!(stored, [false, false, true]);
}

pub(crate) async fn refreshed_definitions_are_kept(fixture: Fixture) {
    define(&fixture, vec![definition("a"), definition("b")]).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    refresh(&fixture).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 1);
    assert_eq!(are_stored(&fixture, &["a", "b"]).await, [true, false]);
}

pub(crate) async fn definitions_stored_again_are_kept(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    define(&fixture, vec![definition("a")]).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    assert_eq!(forget(&fixture).await, 0);
}

/// A read is dropped with its caller, so only a write may write.
pub(crate) async fn reading_a_definition_writes_nothing(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    pass(&fixture, 2 * REFRESHED_AFTER).await;
    let used = "SELECT used_at FROM feed_definition";
    let before = fixture.database.number(used).await;
    assert!(is_stale(&fixture).await);
    assert_eq!(fixture.database.number(used).await, before);
}

pub(crate) async fn a_use_is_written_at_most_once_a_day(fixture: Fixture) {
    define(&fixture, vec![definition("a")]).await;
    let used = "SELECT used_at FROM feed_definition";
    pass(&fixture, REFRESHED_AFTER / 2).await;
    let before = fixture.database.number(used).await;
    define(&fixture, vec![definition("a")]).await;
    assert!(!is_stale(&fixture).await);
    refresh(&fixture).await;
    assert_eq!(fixture.database.number(used).await, before);
    pass(&fixture, REFRESHED_AFTER).await;
    assert!(is_stale(&fixture).await);
    refresh(&fixture).await;
    let now = fixture.now().await;
    let age = now - fixture.database.number(used).await;
    assert!(age < REFRESHED_AFTER / 2, "{age}");
}
