//! A page costs what is on it, not what is before, after or beside it. Counted on PostgreSQL;
//! SQLite's steps are counted beside its statements.

use std::sync::Arc;

use wakeline_feed::{
    bookmark::Bookmark,
    fact::{Fact, Reference},
    query::Query,
    reading::{Plan, Reading},
    specification::{Label, Match, Projection, SingleProjection},
    store::{ConcernQuery, Seq, Store},
};
use wakeline_testkit::local_bus;

use crate::{
    database::Database,
    facts::{fact, save},
    paged::next_page,
    specifications::{comments, found, path, posts, specification},
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

/// The cost of a page of new comments on a site with so many posts, where `between` came before
/// them.
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

/// A site with many posts, and another with a page of them, each with a comment.
struct TwoSites {
    database: Database,
    site: Seq,
    posts: Vec<Seq>,
    comments: Vec<Seq>,
}

async fn two() -> TwoSites {
    let database = Database::postgres().await;
    let (crowded, site) = (fact("Site", 1, &[]), fact("Site", 2, &[]));
    let mut facts = vec![crowded.clone(), site.clone()];
    for n in 0..MANY {
        let post = fact("Post", n, &[("site", &crowded)]);
        facts.push(post.clone());
        facts.push(fact("Comment", n, &[("post", &post)]));
    }
    let posts = (0..PAGE).map(|n| fact("Post", n, &[("site", &site)]));
    let posts: Vec<Fact> = posts.collect();
    facts.extend(posts.iter().cloned());
    facts.extend((0..PAGE).map(|n| fact("Comment", n, &[("post", &posts[n])])));
    let at = save(&*database.store().await, &facts).await;
    let from = 2 + 2 * MANY;
    TwoSites {
        database,
        site: at[1],
        posts: at[from..from + PAGE].to_vec(),
        comments: at[from + PAGE..].to_vec(),
    }
}

#[tokio::test]
async fn a_check_costs_what_it_asks_for() {
    let two = two().await;
    let (_, matches) = comments();
    // From a post on to its comments, and from a comment back to the site.
    let from_post = Arc::new(Query::of(&[matches[0].unknown.clone()], &matches[1..]).unwrap());
    let up = path(&[], "comment", &[("post", "Post"), ("site", "Site")]);
    let site = found("site", "Site", vec![up]);
    let from_comment = Query::of(&[matches[1].unknown.clone()], &[site]).unwrap();
    for (query, at) in [
        (from_post, &two.posts),
        (Arc::new(from_comment), &two.comments),
    ] {
        let given: Vec<Vec<Seq>> = at.iter().map(|at| vec![*at]).collect();
        let ask = async |store: Arc<dyn Store>| store.matches(query, given).await.unwrap();
        let (held, cost) = two.database.cost(ask).await;
        assert_eq!(held, [true; PAGE]);
        eprintln!("{PAGE} checks among {MANY} cost {cost}");
        assert_small(cost);
    }
}

#[tokio::test]
async fn who_is_concerned_costs_what_is_new() {
    let two = two().await;
    let query = query(comments());
    let asked = ConcernQuery {
        variable: query.outputs[1],
        query,
        facts: two.comments.clone(),
        watched: Vec::new(),
    };
    let ask = async |store: Arc<dyn Store>| store.concerns(asked).await.unwrap();
    let (concerns, cost) = two.database.cost(ask).await;
    assert_eq!(concerns.len(), PAGE);
    assert!(concerns.iter().all(|one| one.given == [Some(two.site)]));
    eprintln!("{PAGE} new facts among {MANY} cost {cost}");
    assert_small(cost);
}

#[tokio::test]
async fn a_purge_costs_what_it_removes() {
    let two = two().await;
    let keep = vec![two.comments[0]];
    let ask = async |store: Arc<dyn Store>| {
        store
            .purge(two.site, keep, MANY)
            .commit(&local_bus())
            .await
            .unwrap()
    };
    let (gone, cost) = two.database.cost(ask).await;
    assert_eq!(gone.len(), 2 * PAGE - 2);
    eprintln!("a purge of {} among {MANY} cost {cost}", gone.len());
    // Found from above, and deleted from two tables.
    let most = ALWAYS + 2 * EACH * gone.len() as u64;
    assert!(cost < most, "{cost} is more than {most}");
}

#[tokio::test]
async fn reading_all_costs_what_there_is() {
    let database = Database::postgres().await;
    let mut each = Vec::new();
    for (site, count) in [(1, MANY / 10), (2, MANY)] {
        let site = fact("Site", site, &[]);
        let mut facts = vec![site.clone()];
        facts.extend((0..count).map(|n| fact("Post", n, &[("site", &site)])));
        save(&*database.store().await, &facts).await;
        let (givens, matches) = posts();
        let hash = Projection::Single(SingleProjection::Hash("post".into()));
        let specification = specification(&givens, matches, hash);
        let ask = async |store: Arc<dyn Store>| {
            let plan = Arc::new(Plan::of(&specification).unwrap());
            let reading = Reading::start(store, plan, vec![site.reference.clone()]).await;
            let (mut reading, mut read) = (reading.unwrap(), 0);
            while let Some(chunk) = reading.next().await.unwrap() {
                read += chunk.len();
            }
            read
        };
        let (read, cost) = database.cost(ask).await;
        assert_eq!(read, count);
        eprintln!("reading {count} cost {cost}");
        each.push(cost / count as u64);
    }
    assert!(each[0] <= EACH && each[1] <= EACH, "{each:?} for each");
}
