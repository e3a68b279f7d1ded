//! Saving, one by one and several in one moment.

use futures_util::future::join_all;
use wakeline_feed::{fact::Fact, store::SaveOutcome};

use crate::{
    facts::fact,
    fixture::{Fixture, many, missing, new_facts, one, save, with_lists},
};

pub(crate) async fn a_fact_is_read_as_it_was_saved(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let other = fact("Site", "other", &[]);
    // The order of roles, a list of one, a list of none and a repetition all are part of the hash.
    let roles = [
        ("\u{ff61}", one(&site)),
        ("\u{1f600}", many(&[&site])),
        ("none", many(&[])),
        ("sites", many(&[&site, &other, &other])),
    ];
    let post = with_lists("Blog.Post \"ü\"", "post", &roles);
    assert_eq!(fixture.save_new(&[&site, &other, &post]).await, [0, 1, 2]);
    for saved in [&site, &other, &post] {
        assert_eq!(fixture.stored(saved).await.fact, *saved);
    }
}

pub(crate) async fn a_stored_fact_is_left_alone(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    fixture.save(&[&site]).await;
    let before = fixture.seq(&site).await;
    assert!(fixture.save_new(&[&site]).await.is_empty());
    assert_eq!(fixture.seq(&site).await, before);
    assert_eq!(fixture.database.count("feed_fact").await, 1);
}

pub(crate) async fn a_fact_sent_twice_is_saved_once(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", &site)]);
    let new = fixture.save_new(&[&site, &site, &post, &post]).await;
    assert_eq!(new, [0, 2]);
    assert_eq!(fixture.database.count("feed_fact").await, 2);
    assert_eq!(fixture.database.count("feed_edge").await, 1);
}

pub(crate) async fn an_empty_save_stores_nothing(fixture: Fixture) {
    assert!(fixture.save_new(&[]).await.is_empty());
    assert!(fixture.log(10).await.is_empty());
}

pub(crate) async fn only_facts_that_were_not_stored_are_new(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let [a, b] = ["a", "b"].map(|name| fact("Post", name, &[("site", &site)]));
    assert_eq!(fixture.save_new(&[&site, &a]).await, [0, 1]);
    let saved = fixture.save(&[&site, &a, &b]).await;
    let new = vec![(2, fixture.seq(&b).await)];
    assert_eq!(saved, SaveOutcome::Stored { new });
}

pub(crate) async fn a_predecessor_is_before_its_successors(fixture: Fixture) {
    let mut chain = vec![fact("Link", 0, &[])];
    for number in 1..50 {
        chain.push(fact("Link", number, &[("last", &chain[number - 1])]));
    }
    // Some are stored already: only the others get new seqs.
    fixture
        .save(&chain.iter().take(10).collect::<Vec<_>>())
        .await;
    fixture.save(&chain.iter().collect::<Vec<_>>()).await;
    let references = chain.iter().map(|link| link.reference.clone()).collect();
    let at = fixture.store.find(references).await.unwrap();
    assert!(at.is_sorted() && at[0].is_some(), "{at:?}");
}

pub(crate) async fn without_a_predecessor_nothing_is_saved(fixture: Fixture) {
    let [here, gone] = ["here", "gone"].map(|name| fact("Site", name, &[]));
    let post = with_lists("Post", "post", &[("sites", many(&[&here, &gone]))]);
    // The first time the type is not stored either.
    for _ in 0..2 {
        let nobody = fact("Nobody", "n", &[]);
        let stranger = fact("Post", "other", &[("by", &nobody)]);
        assert_eq!(fixture.save(&[&here, &post]).await, missing(&gone));
        let refused = fixture.save(&[&here, &stranger]).await;
        assert_eq!(refused, missing(&nobody));
        for fact in [&here, &post, &stranger] {
            assert_eq!(fixture.find(fact).await, None);
        }
        fixture.save(&[&fact("Site", "unrelated", &[])]).await;
    }
    assert_eq!(fixture.save_new(&[&here, &gone, &post]).await, [0, 1, 2]);
}

pub(crate) async fn a_predecessor_sent_after_its_successor_is_missing(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", &site)]);
    assert_eq!(fixture.save(&[&post, &site]).await, missing(&site));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.save_new(&[&post, &site]).await, [0]);
}

pub(crate) async fn the_first_missing_predecessor_is_named(fixture: Fixture) {
    let sites: Vec<_> = ["c", "a", "d", "b"]
        .map(|name| fact("Site", name, &[]))
        .into();
    fixture.save(&[&sites[0]]).await;
    // The ids of the roles descend, while the roles of a fact ascend.
    let roles = ["w", "x", "y", "z"];
    for role in roles.into_iter().rev() {
        let first = fact("Post", role, &[(role, &sites[0])]);
        fixture.save(&[&first]).await;
    }
    let by_role: Vec<_> = roles.into_iter().zip(&sites).collect();
    let post = fact("Post", "post", &by_role);
    assert_eq!(fixture.save(&[&post]).await, missing(&sites[1]));
}

pub(crate) async fn facts_are_found_by_hash_and_type(fixture: Fixture) {
    let [site, page] = ["Site", "Page"].map(|kind| fact(kind, "same hash", &[]));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.find(&page).await, None);
    let post = fact("Post", "post", &[("page", &page)]);
    assert_eq!(fixture.save(&[&post]).await, missing(&page));
    assert_eq!(fixture.save_new(&[&page, &post]).await, [0, 1]);
    assert_ne!(fixture.seq(&site).await, fixture.seq(&page).await);
}

/// Saves at the same time: the first is under way while the others wait for the next batch.
async fn save_together(fixture: &Fixture, saves: &[Vec<&Fact>]) -> Vec<SaveOutcome> {
    join_all(saves.iter().map(|facts| save(&*fixture.store, facts))).await
}

pub(crate) async fn a_refused_save_fails_alone(fixture: Fixture) {
    let gone = fact("Site", "gone", &[]);
    let facts = (0..60).map(|number| {
        let under = (number % 3 == 0).then_some(("site", &gone));
        fact("Post", number, under.as_slice())
    });
    let facts: Vec<_> = facts.collect();
    let saves: Vec<_> = facts.iter().map(|fact| vec![fact]).collect();
    let outcomes = save_together(&fixture, &saves).await;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            SaveOutcome::Stored { new } => assert!(number % 3 != 0 && new.len() == 1),
            refused => assert!(number % 3 == 0 && refused == missing(&gone)),
        }
    }
    assert_eq!(fixture.database.count("feed_fact").await, 40);
}

pub(crate) async fn successors_of_a_refused_save_are_refused(fixture: Fixture) {
    let gone = fact("Site", "gone", &[]);
    let first = fact("Fact", "first", &[]);
    let refused = fact("Post", "refused", &[("site", &gone)]);
    let after = fact("Comment", "after", &[("post", &refused)]);
    let last = fact("Comment", "last", &[("post", &after)]);
    // Types and roles are stored before, so that the saves share a batch.
    fixture.save(&[&first]).await;
    let saves = [&first, &refused, &after, &last, &first].map(|fact| vec![fact]);
    let outcomes = save_together(&fixture, &saves).await;
    let wanted = [missing(&gone), missing(&refused), missing(&after)];
    assert_eq!(outcomes[1..4], wanted);
    assert_eq!(outcomes[4], SaveOutcome::Stored { new: Vec::new() });
    assert_eq!(fixture.database.count("feed_fact").await, 1);
    let again = fixture.save_new(&[&gone, &refused, &after, &last]).await;
    assert_eq!(again, [0, 1, 2, 3]);
}

pub(crate) async fn concurrent_saves_may_share_facts(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let posts: Vec<_> = (0..60)
        .map(|number| fact("Post", number, &[("site", &site)]))
        .collect();
    let saves: Vec<_> = posts.iter().map(|post| vec![&site, post]).collect();
    let mut firsts = 0;
    for saved in save_together(&fixture, &saves).await {
        let new = new_facts(saved);
        firsts += usize::from(new[0].0 == 0);
        assert_eq!(new.last().unwrap().0, 1);
    }
    assert_eq!(firsts, 1);
    assert_eq!(fixture.database.count("feed_fact").await, 61);
    assert_eq!(fixture.database.count("feed_edge").await, 60);
}

pub(crate) async fn another_node_finds_the_saved_facts(fixture: Fixture) {
    let other = Fixture {
        store: fixture.database.store().await,
        database: fixture.database,
    };
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", &site)]);
    save(&*fixture.store, &[&site]).await;
    assert_eq!(other.save_new(&[&post]).await, [0]);
    let found = fixture.store.find(vec![post.reference.clone()]).await;
    assert_eq!(found.unwrap(), [other.find(&post).await]);
    assert_eq!(other.stored(&site).await.fact, site);
}
