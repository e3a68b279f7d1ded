//! Pages of feeds.

use std::{collections::BTreeSet, sync::Arc};

use rand::RngExt;
use wakeline_feed::{
    bookmark::Bookmark,
    fact::Reference,
    query::Query,
    store::{DeltaQuery, RowCursor, ScanDirection, Seq, Store, TupleRow},
};

use crate::{
    database::Database,
    facts::fact,
    paged::{fresh_page, next_page},
    random::{StoredFacts, seeds},
    saving::save,
    specifications::{COMMENTS, POSTS, query},
};

const SEEDS: usize = 6;
/// Specifications per store.
const SPECIFICATIONS: usize = 15;
const FACTS: usize = 24;
/// A span that is not short: new facts are counted then, to choose the direction.
const FAR: Seq = 1_000_000;

type Tuples = Vec<Vec<Reference>>;

/// Goes on until the last page; a page's bookmark must be as good as text.
async fn read_on(
    store: &dyn Store,
    query: &Arc<Query>,
    given: &[Reference],
    mut at: Bookmark,
    to: Seq,
    limit: usize,
) -> (Tuples, Bookmark) {
    let mut all = Tuples::new();
    loop {
        let page = next_page(store, query, given, &at, to, limit).await;
        assert!(page.tuples.len() <= limit);
        let is_full = page.tuples.len() == limit;
        assert!(page.is_last || is_full, "a short page in the middle");
        all.extend(page.tuples);
        let reached = page.reached;
        assert_eq!(reached.to_string().parse(), Ok(reached.clone()));
        if page.is_last {
            return (all, reached);
        }
        let is_before = at.compare(&reached).is_lt();
        assert!(is_before, "{at} is not before {reached}");
        at = reached;
    }
}

/// Each tuple once.
fn set<T: Ord>(tuples: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    for tuple in tuples {
        assert!(set.insert(tuple), "a tuple came twice");
    }
    set
}

pub(crate) async fn pages_of_any_size_have_all_tuples(database: Database) {
    let store = database.store().await;
    let mut found = 0;
    for seed in seeds(SEEDS) {
        let mut stored = StoredFacts::save(&*store, seed, FACTS).await;
        let to = store.horizon().await.unwrap().settled;
        for case in stored.cases(SPECIFICATIONS, false) {
            let specification = &case.specification;
            let wanted = set(stored.plain.tuples(specification, &case.given));
            found += wanted.len();
            for limit in [1, 2, 3, 100] {
                let (start, given) = (Bookmark::Start, &case.references);
                let (all, end) = read_on(&*store, &case.query, given, start, to, limit).await;
                assert_eq!(set(all), wanted, "{specification:#?} in pages of {limit}");
                assert_eq!(end, Bookmark::Finished(to));
            }
        }
    }
    assert!(found > 0, "no specification has a tuple");
}

pub(crate) async fn consecutive_spans_have_all_tuples(database: Database) {
    let store = database.store().await;
    for seed in seeds(SEEDS) {
        let mut stored = StoredFacts::save(&*store, seed, FACTS).await;
        for case in stored.cases(SPECIFICATIONS, false) {
            let random = &mut stored.random.0;
            // From where all givens are stored, so that no span starts again.
            let first = case.given.iter().max().copied().unwrap_or_default();
            let middle = random.random_range(first..FACTS);
            let last = stored.seqs[FACTS - 1];
            let specification = &case.specification;
            let wanted = set(stored.plain.tuples(specification, &case.given));
            for last in [last, last + FAR] {
                let ends = [stored.seqs[first], stored.seqs[middle], last];
                let (mut at, mut all) = (Bookmark::Start, Tuples::new());
                for to in ends {
                    let (limit, given) = (random.random_range(1..4), &case.references);
                    let (some, reached) = read_on(&*store, &case.query, given, at, to, limit).await;
                    all.extend(some);
                    at = reached;
                }
                assert_eq!(set(all), wanted, "{specification:#?} in spans to {ends:?}");
            }
        }
    }
}

/// All rows of a delta in one direction, a few at a time.
async fn scan(
    direction: ScanDirection,
    store: &dyn Store,
    delta: &DeltaQuery,
    limit: usize,
) -> Vec<TupleRow> {
    // Before the first: no fact has this seq.
    let at = vec![0];
    let mut delta = DeltaQuery {
        limit,
        cursor: Some(RowCursor { direction, at }),
        ..delta.clone()
    };
    let mut all = Vec::new();
    loop {
        let rows = store.delta_page(delta.clone()).await.unwrap();
        delta.cursor = rows.last().map(|row| row.at.clone());
        all.extend(rows);
        if delta.cursor.is_none() {
            return all;
        }
    }
}

async fn scan_both(
    store: &dyn Store,
    delta: &DeltaQuery,
    limit: usize,
) -> (Vec<TupleRow>, Vec<TupleRow>) {
    let down = scan(ScanDirection::FromGiven, store, delta, limit).await;
    let up = scan(ScanDirection::FromNew, store, delta, limit).await;
    let outputs = |rows: &[TupleRow]| set(rows.iter().map(|row| row.outputs.clone()));
    assert_eq!(outputs(&down), outputs(&up), "{delta:#?}");
    (down, up)
}

pub(crate) async fn both_directions_find_the_same_tuples(database: Database) {
    let store = database.store().await;
    for seed in seeds(SEEDS) {
        let mut stored = StoredFacts::save(&*store, seed, FACTS).await;
        for case in stored.cases(4 * SPECIFICATIONS, false) {
            // From where half of a tuple is stored.
            let tuples = stored.plain.tuples(&case.specification, &case.given);
            let seq = |fact: &Reference| stored.seq(fact);
            let froms = tuples
                .iter()
                .filter_map(|tuple| tuple.iter().map(seq).min());
            for from in froms.collect::<BTreeSet<Seq>>() {
                for first_new_output in 0..case.query.outputs.len() {
                    let delta = DeltaQuery {
                        query: case.query.clone(),
                        given: case.given.iter().map(|n| stored.seqs[*n]).collect(),
                        from,
                        to: stored.seqs[FACTS - 1],
                        first_new_output,
                        cursor: None,
                        limit: 0,
                    };
                    let limit = stored.random.0.random_range(1..4);
                    scan_both(&*store, &delta, limit).await;
                }
            }
        }
    }
    // New comments on old posts are found in another order from below.
    let site = fact("Site", 1, &[]);
    let posts = [1, 2].map(|n| fact("Post", n, &[("site", &site)]));
    let comments = [1, 2, 3, 4].map(|n| fact("Comment", n, &[("post", &posts[n % 2])]));
    let seqs = save(&*store, &[&[site], &posts[..], &comments].concat()).await;
    let delta = DeltaQuery {
        query: query(COMMENTS),
        given: vec![seqs[0]],
        from: seqs[2],
        to: seqs[6],
        first_new_output: 1,
        cursor: None,
        limit: 0,
    };
    let (down, up) = scan_both(&*store, &delta, 3).await;
    assert_eq!((down.len(), up.len()), (4, 4));
    assert_ne!(down[0].at.at, up[0].at.at, "there was one direction only");
}

pub(crate) async fn a_feed_is_empty_until_its_given_is_stored(database: Database) {
    let store = database.store().await;
    let query = query(POSTS);
    let site = fact("Site", 1, &[]);
    let given = [site.reference.clone()];
    let at = "12.5".parse().unwrap();
    let page = fresh_page(&*store, &query, &given, &at, 10).await;
    assert!(page.is_last && page.tuples.is_empty());
    assert_eq!(page.reached, at);
    let post = fact("Post", 1, &[("site", &site)]);
    save(&*store, &[site, post.clone()]).await;
    let page = fresh_page(&*store, &query, &given, &at, 10).await;
    assert_eq!(page.tuples, [[post.reference]]);
}

pub(crate) async fn a_given_stored_late_starts_its_feed_again(database: Database) {
    let store = database.store().await;
    // The given's predecessor is older than the given itself.
    let query = query("(s: Site) { u: User [u = s->creator: User] }");
    let creator = fact("User", 1, &[]);
    let before = save(&*store, std::slice::from_ref(&creator)).await;
    let site = fact("Site", 1, &[("creator", &creator)]);
    save(&*store, std::slice::from_ref(&site)).await;
    let at = Bookmark::Finished(before[0]);
    let page = fresh_page(&*store, &query, &[site.reference], &at, 10).await;
    assert_eq!(page.tuples, [[creator.reference]]);
}

pub(crate) async fn an_unknown_type_or_role_finds_nothing(database: Database) {
    let store = database.store().await;
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    save(&*store, &[site.clone(), post.clone()]).await;
    let given = [site.reference.clone()];
    let y = "{ y: Y [y->r: Post = x] }";
    for (matches, tuples) in [
        ("x: Strange [x->site: Site = s]".to_owned(), 0),
        ("x: Post [x->strange: Site = s]".to_owned(), 0),
        (format!("x: Post [x->site: Site = s E {y}]"), 0),
        (format!("x: Post [x->site: Site = s !E {y}]"), 1),
    ] {
        let query = query(&format!("(s: Site) {{ {matches} }}"));
        let page = fresh_page(&*store, &query, &given, &Bookmark::Start, 10).await;
        assert_eq!(page.tuples.len(), tuples, "{query:?}");
    }
}

pub(crate) async fn a_page_that_ends_the_span_is_the_last(database: Database) {
    let store = database.store().await;
    let query = query(COMMENTS);
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    let mut facts = vec![site.clone(), post.clone()];
    facts.extend((0..4).map(|n| fact("Comment", n, &[("post", &post)])));
    save(&*store, &facts).await;
    let given = [site.reference];
    let first = fresh_page(&*store, &query, &given, &Bookmark::Start, 2).await;
    assert!(!first.is_last);
    let second = fresh_page(&*store, &query, &given, &first.reached, 2).await;
    assert!(second.is_last);
    assert_eq!(second.tuples.len(), 2);
    let third = fresh_page(&*store, &query, &given, &second.reached, 2).await;
    assert!(third.is_last && third.tuples.is_empty());
    assert_eq!(third.reached, second.reached);
}

pub(crate) async fn a_fresh_page_has_the_facts_saved_before(database: Database) {
    let store = database.store().await;
    let query = query(POSTS);
    let site = fact("Site", 1, &[]);
    save(&*store, std::slice::from_ref(&site)).await;
    let given = [site.reference.clone()];
    let mut at = Bookmark::Start;
    for n in 0..20 {
        let post = fact("Post", n, &[("site", &site)]);
        save(&*store, std::slice::from_ref(&post)).await;
        let page = fresh_page(&*store, &query, &given, &at, 10).await;
        assert_eq!(page.tuples, [[post.reference]]);
        at = page.reached;
    }
}

pub(crate) async fn a_bookmark_of_another_store_means_the_beginning(database: Database) {
    let store = database.store().await;
    let query = query(POSTS);
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    save(&*store, &[site.clone(), post.clone()]).await;
    let far = Bookmark::Finished(FAR);
    let page = fresh_page(&*store, &query, &[site.reference], &far, 10).await;
    assert_eq!(page.tuples, [[post.reference]]);
}
