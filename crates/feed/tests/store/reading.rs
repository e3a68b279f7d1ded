//! Finding and reading facts.

use crate::fixture::{Fixture, fact, many, one};

pub(crate) async fn what_is_not_stored_is_not_found(fixture: Fixture) {
    let [site, other] = ["site", "other"].map(|name| fact("Site", name, &[]));
    fixture.save(&[&site]).await;
    let stranger = fact("Stranger\0", "site", &[]);
    let asked = [&other, &site, &stranger, &site].map(|fact| fact.reference.clone());
    let at = fixture.find(&site).await;
    let found = fixture.store.find(asked.into()).await.unwrap();
    assert_eq!(found, [None, at, None, at]);
    assert!(fixture.store.find(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn facts_come_in_the_order_asked_for(fixture: Fixture) {
    let facts = ["a", "b", "c"].map(|name| fact("Site", name, &[]));
    fixture.save(&facts.each_ref()).await;
    let (a, c) = (fixture.at(&facts[0]).await, fixture.at(&facts[2]).await);
    let stored = fixture.store.facts(vec![c, c + 100, a]).await.unwrap();
    let at: Vec<_> = stored.iter().map(|stored| stored.seq).collect();
    assert_eq!(at, [c, a]);
    assert_eq!(stored[1].fact, facts[0]);
}

pub(crate) async fn a_closure_has_all_ancestors_once(fixture: Fixture) {
    let [root, other] = ["root", "other"].map(|name| fact("Root", name, &[]));
    let left = fact("Left", "left", &[("up", one(&root))]);
    let right = fact("Right", "right", &[("up", one(&root))]);
    let end = fact("End", "end", &[("both", many(&[&left, &right, &root]))]);
    fixture.save(&[&root, &other, &left, &right, &end]).await;
    let mut at = Vec::new();
    for fact in [&root, &left, &right, &end] {
        at.push(fixture.at(fact).await);
    }
    let closure = fixture.store.closure(vec![at[3], at[1]]).await.unwrap();
    assert_eq!(closure, at);
    assert_eq!(fixture.store.closure(vec![at[0]]).await.unwrap(), [at[0]]);
    assert!(fixture.store.closure(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn it_is_known_when_a_fact_was_learned(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let before = fixture.database.now().await;
    fixture.save(&[&site]).await;
    let after = fixture.database.now().await;
    let saved_at = fixture.stored(&site).await.saved_at;
    assert!((before..=after).contains(&saved_at));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.stored(&site).await.saved_at, saved_at);
}
