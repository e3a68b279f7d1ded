//! Two nodes at the same moment.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::join_all;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use tokio::sync::Barrier;
use wakeline_feed::{
    fact::{Fact, Reference},
    store::Store,
};
use wakeline_testkit::CommitAlone;

use crate::{
    facts::fact,
    fixture::{Fixture, LogFollower, many, new_facts, one, save, with_lists},
    keys::{pair, principal},
};

const SAVERS: usize = 8;
const ROUNDS: usize = 20;

async fn nodes(fixture: &Fixture) -> [Arc<dyn Store>; 2] {
    [fixture.store.clone(), fixture.database.store().await]
}

pub(crate) async fn a_fact_saved_by_many_is_new_to_one(fixture: Fixture) {
    let nodes = nodes(&fixture).await;
    for round in 0..ROUNDS {
        let barrier = Arc::new(Barrier::new(SAVERS));
        let saves = (0..SAVERS).map(|number| {
            let (store, barrier) = (nodes[number % 2].clone(), barrier.clone());
            let shared = fact("Site", format!("site {round}"), &[]);
            let name = format!("post {round} {number}");
            let own = fact("Post", name.clone(), &[("site", &shared)]);
            tokio::spawn(async move {
                barrier.wait().await;
                let new = new_facts(save(&*store, &[&shared, &own]).await);
                assert_eq!(new.last().unwrap().0, 1);
                new.len() - 1
            })
        });
        let firsts: usize = join_all(saves).await.into_iter().map(Result::unwrap).sum();
        assert_eq!(firsts, 1);
    }
    let count = i64::try_from(ROUNDS * (SAVERS + 1)).unwrap();
    assert_eq!(fixture.database.count("feed_fact").await, count);
    in_order(&fixture).await;
}

/// Every predecessor is before its successors.
async fn in_order(fixture: &Fixture) {
    let turned = "feed_edge WHERE predecessor >= successor";
    assert_eq!(fixture.database.count(turned).await, 0);
}

/// A site, and posts that have it and some of those before as predecessors.
fn graph(random: &mut StdRng, round: usize) -> Vec<Fact> {
    let mut facts = vec![fact("Site", format!("site {round}"), &[])];
    for number in 0..30 {
        let mut before: Vec<&Fact> = facts.iter().collect();
        before.shuffle(random);
        before.truncate(random.random_range(0..4));
        let name = format!("post {round} {number}");
        let roles = [("site", one(&facts[0])), ("others", many(&before))];
        let post = with_lists("Post", &name, &roles);
        facts.push(post);
    }
    facts
}

pub(crate) async fn graphs_that_overlap_are_saved_once(fixture: Fixture) {
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let nodes = nodes(&fixture).await;
    for round in 0..ROUNDS {
        let facts = Arc::new(graph(&mut random, round));
        let barrier = Arc::new(Barrier::new(SAVERS));
        let saves = (0..SAVERS).map(|number| {
            let (store, barrier) = (nodes[number % 2].clone(), barrier.clone());
            let (facts, end) = (facts.clone(), random.random_range(1..=facts.len()));
            tokio::spawn(async move {
                let facts: Vec<&Fact> = facts[..end].iter().collect();
                barrier.wait().await;
                new_facts(save(&*store, &facts).await)
            })
        });
        let saves: Vec<_> = saves.collect();
        let mut new = BTreeSet::new();
        for saved in join_all(saves).await {
            for (index, _) in saved.unwrap() {
                assert!(new.insert(index), "{index} was new twice");
            }
        }
        let count = new.len();
        assert!(new.into_iter().eq(0..count));
    }
    in_order(&fixture).await;
}

pub(crate) async fn a_follower_reads_every_fact_once(fixture: Fixture) {
    let nodes = nodes(&fixture).await;
    let follower = LogFollower::start(&fixture).await;
    let writers = (0..SAVERS).map(|number| {
        let store = nodes[number % 2].clone();
        tokio::spawn(async move {
            let site = fact("Site", "site", &[]);
            let mut saved = BTreeSet::from([site.reference.clone()]);
            for round in 0..ROUNDS {
                let name = format!("{number} {round}");
                let post = fact("Post", name.clone(), &[("site", &site)]);
                let comment = fact("Comment", name, &[("post", &post)]);
                save(&*store, &[&site, &post, &comment]).await;
                saved.extend([post.reference, comment.reference]);
            }
            saved
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut saved: BTreeSet<Reference> = BTreeSet::new();
    for writer in join_all(writers).await {
        saved.extend(writer.unwrap());
    }
    assert_eq!(follower.finish().await, saved);
}

pub(crate) async fn one_of_many_concurrent_keys_is_kept(fixture: Fixture) {
    let nodes = nodes(&fixture).await;
    let barrier = Arc::new(Barrier::new(SAVERS));
    let keepers = (0..SAVERS).map(|number| {
        let (store, barrier) = (nodes[number % 2].clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            let anna = principal("google", "anna");
            store
                .store_key(anna, pair(&number.to_string()))
                .done()
                .await
        })
    });
    let kept: Vec<_> = join_all(keepers.collect::<Vec<_>>()).await;
    let stored = fixture.store.key(principal("google", "anna")).await;
    let stored = stored.unwrap().unwrap();
    for kept in kept {
        assert_eq!(kept.unwrap(), stored);
    }
}
