//! A page costs what is on it, not what is before, after or beside it. Counted on PostgreSQL; SQLite's
//! steps are counted beside its statements.

use std::sync::Arc;

use wakeline_feed::{
    bookmark::Bookmark,
    fact::{Fact, Reference},
    query::Query,
    specification::{Label, Match},
    store::Store,
};

use crate::{
    database::Database,
    facts::{fact, save},
    paged::next_page,
    words::{comments, posts},
};

const MANY: usize = 10_000;
const PAGE: usize = 100;
/// Rows and index entries for each tuple of a page, and for a page whatever is on it.
const EACH: u64 = 6;
const ALWAYS: u64 = 200;

fn query((givens, matches): (Vec<Label>, Vec<Match>)) -> Arc<Query> {
    Arc::new(Query::of(&givens, &matches).unwrap())
}

/// The cost of a page in the middle of all.
async fn middle_page(database: &Database, query: &Arc<Query>, given: &Reference) -> u64 {
    let store = database.store().await;
    let to = store.horizon().await.unwrap().settled;
    let given = [given.clone()];
    let first = next_page(&*store, query, &given, &Bookmark::Start, to, MANY / 2 + 7).await;
    let at = first.reached;
    drop(store);
    let (page, cost) = database
        .cost(async |store: Arc<dyn Store>| next_page(&*store, query, &given, &at, to, PAGE).await)
        .await;
    assert_eq!(page.tuples.len(), PAGE);
    eprintln!("a page of {PAGE} of {MANY} cost {cost}");
    cost
}

fn assert_small(cost: u64) {
    let most = ALWAYS + EACH * PAGE as u64;
    assert!(
        cost < most,
        "a page of {PAGE} cost {cost}, more than {most}"
    );
}

#[tokio::test]
async fn a_page_of_one_level_costs_the_page() {
    let database = Database::postgres().await;
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    facts.extend((0..MANY).map(|n| fact("Post", n, &[("site", &site)])));
    save(&*database.store().await, &facts).await;
    assert_small(middle_page(&database, &query(posts()), &site.reference).await);
}

#[tokio::test]
async fn a_page_of_two_levels_costs_the_page() {
    let database = Database::postgres().await;
    let site = fact("Site", 1, &[]);
    let mut facts = vec![site.clone()];
    for n in 0..MANY / 100 {
        let post = fact("Post", n, &[("site", &site)]);
        facts.push(post.clone());
        facts.extend((0..100).map(|n| fact("Comment", n, &[("post", &post)])));
    }
    save(&*database.store().await, &facts).await;
    assert_small(middle_page(&database, &query(comments()), &site.reference).await);
}

#[tokio::test]
async fn a_page_inside_a_crowded_parent_costs_the_page() {
    let database = Database::postgres().await;
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    let mut facts = vec![site.clone(), post.clone()];
    facts.extend((0..MANY).map(|n| fact("Comment", n, &[("post", &post)])));
    save(&*database.store().await, &facts).await;
    assert_small(middle_page(&database, &query(comments()), &site.reference).await);
}

/// The cost of a page of new comments on a site with so many posts, where `between` came before them.
async fn new_page(old: usize, between: &[Fact]) -> u64 {
    let database = Database::postgres().await;
    let store = database.store().await;
    let site = fact("Site", 1, &[]);
    let posts: Vec<Fact> = (0..old)
        .map(|n| fact("Post", n, &[("site", &site)]))
        .collect();
    let mut facts = vec![site.clone()];
    facts.extend(posts.iter().cloned());
    save(&*store, &facts).await;
    let from = store.horizon().await.unwrap().settled;
    save(&*store, between).await;
    let new: Vec<Fact> = (0..PAGE)
        .map(|n| fact("Comment", n, &[("post", &posts[n * old / PAGE])]))
        .collect();
    save(&*store, &new).await;
    let to = store.horizon().await.unwrap().settled;
    drop(store);
    let (query, given) = (query(comments()), [site.reference]);
    let at = Bookmark::Finished(from);
    let (page, cost) = database
        .cost(async |store: Arc<dyn Store>| next_page(&*store, &query, &given, &at, to, PAGE).await)
        .await;
    assert_eq!(page.tuples.len(), PAGE);
    let between = between.len();
    eprintln!("{PAGE} new ones below {old} old ones after {between} others cost {cost}");
    cost
}

#[tokio::test]
async fn new_facts_below_many_old_ones_cost_the_new_ones() {
    assert_small(new_page(MANY, &[]).await);
}

#[tokio::test]
async fn new_facts_below_many_old_ones_and_after_many_others_cost_the_new_ones() {
    let others: Vec<Fact> = (0..MANY / 2).map(|n| fact("Other", n, &[])).collect();
    assert_small(new_page(MANY, &others).await);
}

#[tokio::test]
async fn new_facts_below_few_old_ones_and_after_many_of_their_type_cost_the_new_ones() {
    let site = fact("Site", 2, &[]);
    let post = fact("Post", 2, &[("site", &site)]);
    let mut others = vec![site, post.clone()];
    others.extend((0..MANY).map(|n| fact("Comment", n, &[("post", &post)])));
    assert_small(new_page(3, &others).await);
}
