//! Finding and reading facts.

use wakeline_feed::fact::Reference;

use crate::{
    facts::fact,
    fixture::{Fixture, many, with_lists},
};

pub(crate) async fn a_fact_that_is_not_stored_is_not_found(fixture: Fixture) {
    let [site, other] = ["site", "other"].map(|name| fact("Site", name, &[]));
    fixture.save(&[&site]).await;
    let stranger = Reference {
        kind: "Stranger\0".into(),
        ..site.reference.clone()
    };
    let seq = fixture.find(&site).await;
    let references = vec![
        other.reference,
        site.reference.clone(),
        stranger,
        site.reference,
    ];
    let found = fixture.store.find(references).await.unwrap();
    assert_eq!(found, [None, seq, None, seq]);
    assert!(fixture.store.find(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn facts_are_read_in_the_order_of_the_request(fixture: Fixture) {
    let facts = ["a", "b", "c"].map(|name| fact("Site", name, &[]));
    fixture.save(&facts.each_ref()).await;
    let (a, c) = (fixture.seq(&facts[0]).await, fixture.seq(&facts[2]).await);
    let stored = fixture.store.facts(vec![c, c + 100, a]).await.unwrap();
    let at: Vec<_> = stored.iter().map(|stored| stored.seq).collect();
    assert_eq!(at, [c, a]);
    assert_eq!(stored[1].fact, facts[0]);
}

pub(crate) async fn a_closure_has_all_ancestors_once(fixture: Fixture) {
    let [root, other] = ["root", "other"].map(|name| fact("Root", name, &[]));
    let left = fact("Left", "left", &[("up", &root)]);
    let right = fact("Right", "right", &[("up", &root)]);
    let end = with_lists("End", "end", &[("both", many(&[&left, &right, &root]))]);
    fixture.save(&[&root, &other, &left, &right, &end]).await;
    let mut at = Vec::new();
    for fact in [&root, &left, &right, &end] {
        at.push(fixture.seq(fact).await);
    }
    let closure = fixture.store.closure(vec![at[3], at[1]]).await.unwrap();
    assert_eq!(closure, at);
    assert_eq!(fixture.store.closure(vec![at[0]]).await.unwrap(), [at[0]]);
    assert!(fixture.store.closure(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn a_fact_has_the_time_of_its_save(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let before = fixture.now().await;
    fixture.save(&[&site]).await;
    let after = fixture.now().await;
    let saved_at = fixture.stored(&site).await.saved_at;
    assert!((before..=after).contains(&saved_at));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.stored(&site).await.saved_at, saved_at);
}
