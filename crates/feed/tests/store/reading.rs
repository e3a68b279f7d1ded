//! Finding and reading facts.

use crate::{
    database::Database,
    ground::{Ground, fact, many, one},
};

pub(crate) async fn what_is_not_stored_is_not_found(database: Database) {
    let ground = Ground::new(database).await;
    let [site, other] = ["site", "other"].map(|name| fact("Site", name, &[]));
    ground.save(&[&site]).await;
    let stranger = fact("Stranger\0", "site", &[]);
    let asked = [&other, &site, &stranger, &site].map(|fact| fact.reference.clone());
    let at = ground.find(&site).await;
    let found = ground.store.find(asked.into()).await.unwrap();
    assert_eq!(found, [None, at, None, at]);
    assert!(ground.store.find(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn facts_come_in_the_order_asked_for(database: Database) {
    let ground = Ground::new(database).await;
    let facts = ["a", "b", "c"].map(|name| fact("Site", name, &[]));
    ground.save(&facts.each_ref()).await;
    let (a, c) = (ground.at(&facts[0]).await, ground.at(&facts[2]).await);
    let stored = ground.store.facts(vec![c, c + 100, a]).await.unwrap();
    let at: Vec<_> = stored.iter().map(|stored| stored.position).collect();
    assert_eq!(at, [c, a]);
    assert_eq!(stored[1].fact, facts[0]);
}

pub(crate) async fn a_closure_has_all_ancestors_once(database: Database) {
    let ground = Ground::new(database).await;
    let [root, other] = ["root", "other"].map(|name| fact("Root", name, &[]));
    let left = fact("Left", "left", &[("up", one(&root))]);
    let right = fact("Right", "right", &[("up", one(&root))]);
    let end = fact("End", "end", &[("both", many(&[&left, &right, &root]))]);
    ground.save(&[&root, &other, &left, &right, &end]).await;
    let mut at = Vec::new();
    for fact in [&root, &left, &right, &end] {
        at.push(ground.at(fact).await);
    }
    let closure = ground.store.closure(vec![at[3], at[1]]).await.unwrap();
    assert_eq!(closure, at);
    assert_eq!(ground.store.closure(vec![at[0]]).await.unwrap(), [at[0]]);
    assert!(ground.store.closure(Vec::new()).await.unwrap().is_empty());
}

pub(crate) async fn it_is_known_when_a_fact_was_learned(database: Database) {
    let ground = Ground::new(database).await;
    let site = fact("Site", "site", &[]);
    let before = ground.database.now().await;
    ground.save(&[&site]).await;
    let after = ground.database.now().await;
    let learned = ground.stored(&site).await.learned;
    assert!((before..=after).contains(&learned));
    ground.save(&[&site]).await;
    assert_eq!(ground.stored(&site).await.learned, learned);
}
