//! The log.

use crate::{
    database::Database,
    ground::{Ground, fact, many, one},
};

pub(crate) async fn the_log_has_every_fact_in_order(database: Database) {
    let ground = Ground::new(database).await;
    let [site, other] = ["site", "other"].map(|name| fact("Site", name, &[]));
    let post = fact(
        "Post",
        "post",
        &[("main", one(&site)), ("sites", many(&[&site, &other]))],
    );
    ground.save(&[&site]).await;
    ground.save(&[&other, &post]).await;
    // Another node has to learn the names first.
    let store = ground.database.store().await;
    let log = store.log(0, 10).await.unwrap();
    let references: Vec<_> = log.entries.iter().map(|entry| &entry.reference).collect();
    let expected = [&site.reference, &other.reference, &post.reference];
    assert_eq!(references, expected);
    assert!(log.entries[0].predecessors.is_empty());
    let (first, second) = (ground.at(&site).await, ground.at(&other).await);
    let mut edges = log.entries[2].predecessors.clone();
    edges.sort();
    let expected = [("main", first), ("sites", first), ("sites", second)];
    let expected = expected.map(|(role, at)| (role.into(), at));
    assert_eq!(edges, expected);
    let horizon = store.horizon().await.unwrap();
    assert_eq!((log.to, log.last), (horizon.settled, horizon.last));
    assert_eq!(log.to, ground.at(&post).await);
}

pub(crate) async fn it_is_read_in_pages(database: Database) {
    let ground = Ground::new(database).await;
    let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let facts: Vec<_> = names.iter().map(|name| fact("Site", name, &[])).collect();
    for fact in &facts {
        ground.save(&[fact]).await;
    }
    let page = ground.store.log(0, 3).await.unwrap();
    assert_eq!(page.entries.len(), 3);
    assert_eq!(page.to, ground.at(&facts[2]).await);
    assert_eq!(page.last, ground.at(&facts[9]).await);
    for limit in [1, 3, 5, 100] {
        let log = ground.log(limit).await;
        assert!(
            log.iter()
                .map(|entry| &entry.reference)
                .eq(facts.iter().map(|fact| &fact.reference))
        );
    }
    let end = ground.store.log(page.last, 3).await.unwrap();
    assert!(end.entries.is_empty() && end.to == page.last);
}

pub(crate) async fn a_purged_fact_is_skipped(database: Database) {
    let ground = Ground::new(database).await;
    let [a, b] = ["a", "b"].map(|name| fact("Site", name, &[]));
    ground.save(&[&a]).await;
    let last = ground.at(&a).await;
    ground.database.execute("DELETE FROM feed_fact").await;
    let page = ground.store.log(0, 10).await.unwrap();
    assert!(page.entries.is_empty() && page.to == last);
    ground.save(&[&b]).await;
    // Whoever has read up to there would miss one in its place.
    assert!(ground.at(&b).await > last);
    assert_eq!(ground.log(10).await.len(), 1);
}

pub(crate) async fn a_refused_save_is_not_in_it(database: Database) {
    let ground = Ground::new(database).await;
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", one(&site))]);
    ground.save(&[&fact("Site", "first", &[]), &post]).await;
    assert!(ground.log(10).await.is_empty());
}
