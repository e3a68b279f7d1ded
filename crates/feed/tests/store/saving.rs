//! Saving, one by one and several in one moment.

use futures_util::future::join_all;
use wakeline_feed::{fact::Predecessors, store::SaveOutcome};

use crate::fixture::{Fixture, fact, many, missing, one, save};

pub(crate) async fn a_fact_is_as_it_was_saved(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let other = fact("Site", "other", &[]);
    // The order of roles, a list of one, a list of none and a repetition all are part of the hash.
    let post = fact(
        "Blog.Post \"ü\"",
        "post",
        &[
            ("\u{ff61}", one(&site)),
            ("\u{1f600}", many(&[&site])),
            ("none", Predecessors::Many(Vec::new())),
            ("sites", many(&[&site, &other, &other])),
        ],
    );
    assert_eq!(fixture.new_ones(&[&site, &other, &post]).await, [0, 1, 2]);
    for saved in [&site, &other, &post] {
        assert_eq!(fixture.stored(saved).await.fact, *saved);
    }
}

pub(crate) async fn a_known_fact_is_left_alone(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    fixture.save(&[&site]).await;
    let before = fixture.at(&site).await;
    assert!(fixture.new_ones(&[&site]).await.is_empty());
    assert_eq!(fixture.at(&site).await, before);
    assert_eq!(fixture.database.count("feed_fact").await, 1);
}

pub(crate) async fn what_is_sent_twice_is_saved_once(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", one(&site))]);
    let new = fixture.new_ones(&[&site, &site, &post, &post]).await;
    assert_eq!(new, [0, 2]);
    assert_eq!(fixture.database.count("feed_fact").await, 2);
    assert_eq!(fixture.database.count("feed_edge").await, 1);
}

pub(crate) async fn nothing_is_nothing(fixture: Fixture) {
    assert!(fixture.new_ones(&[]).await.is_empty());
    assert!(fixture.log(10).await.is_empty());
}

pub(crate) async fn only_what_was_not_known_is_new(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let [a, b] = ["a", "b"].map(|name| fact("Post", name, &[("site", one(&site))]));
    assert_eq!(fixture.new_ones(&[&site, &a]).await, [0, 1]);
    let saved = fixture.save(&[&site, &a, &b]).await;
    let new = vec![(2, fixture.at(&b).await)];
    assert_eq!(saved, SaveOutcome::Stored { new });
}

pub(crate) async fn a_predecessor_is_before_its_successors(fixture: Fixture) {
    let mut chain = vec![fact("Link", "0", &[])];
    for number in 1..50 {
        let last = one(chain.last().unwrap());
        chain.push(fact("Link", &number.to_string(), &[("last", last)]));
    }
    // Some are known already, so that those in between get what is drawn for them.
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
    let post = fact("Post", "post", &[("sites", many(&[&here, &gone]))]);
    // Nobody has heard of the type either, the first time.
    for _ in 0..2 {
        let stranger = fact("Post", "other", &[("by", one(&fact("Nobody", "n", &[])))]);
        assert_eq!(fixture.save(&[&here, &post]).await, missing(&gone));
        let told = fixture.save(&[&here, &stranger]).await;
        assert_eq!(told, missing(&fact("Nobody", "n", &[])));
        for fact in [&here, &post, &stranger] {
            assert_eq!(fixture.find(fact).await, None);
        }
        fixture.save(&[&fact("Site", "unrelated", &[])]).await;
    }
    assert_eq!(fixture.new_ones(&[&here, &gone, &post]).await, [0, 1, 2]);
}

pub(crate) async fn a_predecessor_sent_after_its_successor_is_missing(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", one(&site))]);
    assert_eq!(fixture.save(&[&post, &site]).await, missing(&site));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.new_ones(&[&post, &site]).await, [0]);
}

pub(crate) async fn the_first_that_is_missing_is_named(fixture: Fixture) {
    let sites: Vec<_> = ["c", "a", "d", "b"]
        .map(|name| fact("Site", name, &[]))
        .into();
    fixture.save(&[&sites[0]]).await;
    // The ids of the roles descend, while the roles of a fact ascend.
    let roles = ["w", "x", "y", "z"];
    for role in roles.into_iter().rev() {
        let first = fact("Post", role, &[(role, one(&sites[0]))]);
        fixture.save(&[&first]).await;
    }
    let by_role: Vec<_> = roles.into_iter().zip(sites.iter().map(one)).collect();
    let post = fact("Post", "post", &by_role);
    assert_eq!(fixture.save(&[&post]).await, missing(&sites[1]));
}

pub(crate) async fn the_type_is_part_of_what_is_looked_for(fixture: Fixture) {
    let [site, page] = ["Site", "Page"].map(|kind| fact(kind, "same hash", &[]));
    fixture.save(&[&site]).await;
    assert_eq!(fixture.find(&page).await, None);
    let post = fact("Post", "post", &[("page", one(&page))]);
    assert_eq!(fixture.save(&[&post]).await, missing(&page));
    assert_eq!(fixture.new_ones(&[&page, &post]).await, [0, 1]);
    assert_ne!(fixture.at(&site).await, fixture.at(&page).await);
}

/// Saves of one moment: the first is under way while the others gather.
async fn at_once(fixture: &Fixture, saves: &[Vec<&wakeline_feed::fact::Fact>]) -> Vec<SaveOutcome> {
    join_all(saves.iter().map(|facts| save(&*fixture.store, facts))).await
}

pub(crate) async fn one_that_is_refused_fails_alone(fixture: Fixture) {
    let gone = fact("Site", "gone", &[]);
    let names: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let facts: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let under = (number % 3 == 0).then(|| ("site", one(&gone)));
            fact("Post", name, under.as_slice())
        })
        .collect();
    let saves: Vec<_> = facts.iter().map(|fact| vec![fact]).collect();
    for (number, told) in at_once(&fixture, &saves).await.into_iter().enumerate() {
        match told {
            SaveOutcome::Stored { new } => assert!(number % 3 != 0 && new.len() == 1),
            refused => assert!(number % 3 == 0 && refused == missing(&gone)),
        }
    }
    assert_eq!(fixture.database.count("feed_fact").await, 40);
}

pub(crate) async fn who_builds_on_one_that_is_refused_is_refused(fixture: Fixture) {
    let gone = fact("Site", "gone", &[]);
    let first = fact("Fact", "first", &[]);
    let refused = fact("Post", "refused", &[("site", one(&gone))]);
    let after = fact("Comment", "after", &[("post", one(&refused))]);
    let last = fact("Comment", "last", &[("post", one(&after))]);
    // Types and roles are known before, so that the saves come together.
    fixture.save(&[&first]).await;
    let told = at_once(
        &fixture,
        &[
            vec![&first],
            vec![&refused],
            vec![&after],
            vec![&last],
            vec![&first],
        ],
    )
    .await;
    assert_eq!(told[1], missing(&gone));
    assert_eq!(told[2], missing(&refused));
    assert_eq!(told[3], missing(&after));
    assert_eq!(told[4], SaveOutcome::Stored { new: Vec::new() });
    assert_eq!(fixture.database.count("feed_fact").await, 1);
    let again = fixture.new_ones(&[&gone, &refused, &after, &last]).await;
    assert_eq!(again, [0, 1, 2, 3]);
}

pub(crate) async fn saves_of_one_moment_may_share_facts(fixture: Fixture) {
    let site = fact("Site", "site", &[]);
    let names: Vec<String> = (0..60).map(|number| number.to_string()).collect();
    let posts: Vec<_> = names
        .iter()
        .map(|name| fact("Post", name, &[("site", one(&site))]))
        .collect();
    let saves: Vec<_> = posts.iter().map(|post| vec![&site, post]).collect();
    let mut firsts = 0;
    for told in at_once(&fixture, &saves).await {
        let SaveOutcome::Stored { new } = told else {
            panic!("{told:?}");
        };
        firsts += usize::from(new[0].0 == 0);
        assert_eq!(new.last().unwrap().0, 1);
    }
    assert_eq!(firsts, 1);
    assert_eq!(fixture.database.count("feed_fact").await, 61);
    assert_eq!(fixture.database.count("feed_edge").await, 60);
}

pub(crate) async fn another_node_knows_what_was_saved(fixture: Fixture) {
    let other = Fixture {
        store: fixture.database.store().await,
        database: fixture.database,
    };
    let site = fact("Site", "site", &[]);
    let post = fact("Post", "post", &[("site", one(&site))]);
    save(&*fixture.store, &[&site]).await;
    assert_eq!(other.new_ones(&[&post]).await, [0]);
    let found = fixture
        .store
        .find(vec![post.reference.clone()])
        .await
        .unwrap();
    assert_eq!(found, [other.find(&post).await]);
    assert_eq!(other.stored(&site).await.fact, site);
}
