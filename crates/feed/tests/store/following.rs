//! The log.

use crate::{
    facts::fact,
    fixture::{Fixture, many, one, with_lists},
};

pub(crate) async fn the_log_has_every_fact_in_order(fixture: Fixture) {
    let [site, other] = ["site", "other"].map(|name| fact("Site", name, &[]));
    let roles = [("main", one(&site)), ("sites", many(&[&site, &other]))];
    let post = with_lists("Post", "post", &roles);
    fixture.save(&[&site]).await;
    fixture.save(&[&other, &post]).await;
    // Another node has no names in memory.
    let store = fixture.database.store().await;
    let log = store.log(0, 10).await.unwrap();
    let references: Vec<_> = log.entries.iter().map(|entry| &entry.reference).collect();
    let expected = [&site.reference, &other.reference, &post.reference];
    assert_eq!(references, expected);
    assert!(log.entries[0].predecessors.is_empty());
    let (first, second) = (fixture.seq(&site).await, fixture.seq(&other).await);
    let mut edges = log.entries[2].predecessors.clone();
    edges.sort();
    let expected = [("main", first), ("sites", first), ("sites", second)];
    let expected = expected.map(|(role, at)| (role.into(), at));
    assert_eq!(edges, expected);
    let horizon = store.horizon().await.unwrap();
    assert_eq!((log.to, log.last), (horizon.settled, horizon.last));
    assert_eq!(log.to, fixture.seq(&post).await);
}

pub(crate) async fn the_log_is_read_in_pages(fixture: Fixture) {
    let facts: Vec<_> = (0..10).map(|name| fact("Site", name, &[])).collect();
    for fact in &facts {
        fixture.save(&[fact]).await;
    }
    let page = fixture.store.log(0, 3).await.unwrap();
    assert_eq!(page.entries.len(), 3);
    assert_eq!(page.to, fixture.seq(&facts[2]).await);
    assert_eq!(page.last, fixture.seq(&facts[9]).await);
    for limit in [1, 3, 5, 100] {
        let log = fixture.log(limit).await;
        let references = log.iter().map(|entry| &entry.reference);
        assert!(references.eq(facts.iter().map(|fact| &fact.reference)));
    }
    let end = fixture.store.log(page.last, 3).await.unwrap();
    assert!(end.entries.is_empty() && end.to == page.last);
}

pub(crate) async fn the_log_skips_a_purged_fact(fixture: Fixture) {
    let [a, b] = ["a", "b"].map(|name| fact("Site", name, &[]));
    fixture.save(&[&a]).await;
    let last = fixture.seq(&a).await;
    fixture.database.execute("DELETE FROM feed_fact").await;
    let page = fixture.store.log(0, 10).await.unwrap();
    assert!(page.entries.is_empty() && page.to == last);
    fixture.save(&[&b]).await;
    // A reader that has read up to there would miss a fact with the same seq.
    assert!(fixture.seq(&b).await > last);
    assert_eq!(fixture.log(10).await.len(), 1);
}

pub(crate) async fn a_refused_save_is_not_in_the_log(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", &site)]);
    fixture.save(&[&fact("Site", "first", &[]), &post]).await;
    assert!(fixture.log(10).await.is_empty());
}
