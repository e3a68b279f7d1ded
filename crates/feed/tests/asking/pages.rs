//! Pages of feeds.

use std::{collections::BTreeSet, sync::Arc};

use rand::RngExt;
use wakeline_feed::{
    bookmark::Bookmark,
    fact::Reference,
    query::Query,
    specification::{Label, Match},
    store::{DeltaQuery, RowCursor, ScanDirection, Seq, Store, TupleRow},
};

use crate::{
    database::Database,
    facts::{fact, save},
    paged::{fresh_page, next_page},
    plain_evaluator::PlainEvaluator,
    random::{Random, seeds},
    specifications::{comments, found, label, path, posts},
};

const SEEDS: usize = 6;
/// Specifications per store.
const SPECIFICATIONS: usize = 15;
const FACTS: usize = 24;
/// A span that is not short: which way what is new is found is counted then.
const FAR: Seq = 1_000_000;

type Tuples = Vec<Vec<Reference>>;

/// Goes on until the last page; what a reader is told must be as good as what the page says.
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
        assert!(
            page.is_last || page.tuples.len() == limit,
            "a short page in the middle"
        );
        all.extend(page.tuples);
        assert_eq!(page.reached.to_string().parse(), Ok(page.reached.clone()));
        if page.is_last {
            return (all, page.reached);
        }
        assert!(
            at.compare(&page.reached).is_lt(),
            "{at} is not before {}",
            page.reached
        );
        at = page.reached;
    }
}

fn once(tuples: Tuples) -> BTreeSet<Vec<Reference>> {
    let many = tuples.len();
    let set: BTreeSet<_> = tuples.into_iter().collect();
    assert_eq!(set.len(), many, "a tuple came twice");
    set
}

fn query((givens, matches): &(Vec<Label>, Vec<Match>)) -> Arc<Query> {
    Arc::new(Query::of(givens, matches).unwrap())
}

pub(crate) async fn pages_of_any_size_are_all_tuples(database: Database) {
    let store = database.store().await;
    let mut found = 0;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let facts = random.facts(FACTS, seed);
        save(&*store, &facts).await;
        let to = store.horizon().await.unwrap().settled;
        let plain = PlainEvaluator { facts };
        for _ in 0..SPECIFICATIONS {
            let specification = random.specification(false);
            let Some(given) = random.given(&specification, &plain.facts) else {
                continue;
            };
            let query = Arc::new(Query::of_specification(&specification).unwrap());
            let references: Vec<Reference> = given
                .iter()
                .map(|number| plain.facts[*number].reference.clone())
                .collect();
            let wanted = once(plain.tuples(&specification, &given));
            found += wanted.len();
            for limit in [1, 2, 3, 100] {
                let start = Bookmark::Start;
                let (all, end) = read_on(&*store, &query, &references, start, to, limit).await;
                assert_eq!(once(all), wanted, "{specification:#?} in pages of {limit}");
                assert_eq!(end, Bookmark::Finished(to));
            }
        }
    }
    assert!(found > 0, "nothing was looked for that there is");
}

pub(crate) async fn spans_divide_what_came(database: Database) {
    let store = database.store().await;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let facts = random.facts(FACTS, seed);
        let seqs = save(&*store, &facts).await;
        let plain = PlainEvaluator { facts };
        for _ in 0..SPECIFICATIONS {
            let specification = random.specification(false);
            let Some(given) = random.given(&specification, &plain.facts) else {
                continue;
            };
            let query = Arc::new(Query::of_specification(&specification).unwrap());
            let references: Vec<Reference> = given
                .iter()
                .map(|number| plain.facts[*number].reference.clone())
                .collect();
            // From where all givens are there, so that no span begins anew.
            let first = given.iter().max().copied().unwrap_or_default();
            let middle = random.0.random_range(first..FACTS);
            let last = seqs[FACTS - 1];
            let wanted = once(plain.tuples(&specification, &given));
            for last in [last, last + FAR] {
                let ends = [seqs[first], seqs[middle], last];
                let (mut at, mut all) = (Bookmark::Start, Tuples::new());
                for to in ends {
                    let limit = random.0.random_range(1..4);
                    let (some, reached) =
                        read_on(&*store, &query, &references, at, to, limit).await;
                    all.extend(some);
                    at = reached;
                }
                assert_eq!(once(all), wanted, "{specification:#?} in spans to {ends:?}");
            }
        }
    }
}

/// All rows of a slice by one way, a few at a time.
async fn by(
    direction: ScanDirection,
    store: &dyn Store,
    delta: &DeltaQuery,
    limit: usize,
) -> Vec<TupleRow> {
    let mut delta = delta.clone();
    delta.limit = limit;
    // Before the first: no fact has this seq.
    delta.after = Some(RowCursor {
        direction,
        at: vec![0],
    });
    let mut all = Vec::new();
    loop {
        let rows = store.delta_page(delta.clone()).await.unwrap();
        delta.after = rows.last().map(|row| row.at.clone());
        all.extend(rows);
        if delta.after.is_none() {
            return all;
        }
    }
}

fn outputs(rows: &[TupleRow]) -> BTreeSet<Vec<(Seq, Reference)>> {
    let set: BTreeSet<_> = rows.iter().map(|row| row.outputs.clone()).collect();
    assert_eq!(set.len(), rows.len(), "a tuple came twice");
    set
}

pub(crate) async fn both_ways_find_the_same(database: Database) {
    let store = database.store().await;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let facts = random.facts(FACTS, seed);
        let seqs = save(&*store, &facts).await;
        let plain = PlainEvaluator { facts };
        for _ in 0..4 * SPECIFICATIONS {
            let specification = random.specification(false);
            let Some(given) = random.given(&specification, &plain.facts) else {
                continue;
            };
            let query = Arc::new(Query::of_specification(&specification).unwrap());
            let at = |reference: &Reference| {
                let mut facts = plain.facts.iter();
                seqs[facts.position(|fact| fact.reference == *reference).unwrap()]
            };
            // From where a tuple is half there.
            let tuples = plain.tuples(&specification, &given).into_iter();
            let froms = tuples.filter_map(|tuple| tuple.iter().map(at).min());
            let froms: BTreeSet<Seq> = froms.collect();
            for (from, first_new_output) in froms.into_iter().flat_map(|from| {
                (0..query.outputs.len()).map(move |first_new_output| (from, first_new_output))
            }) {
                let delta = DeltaQuery {
                    query: query.clone(),
                    given: given.iter().map(|number| seqs[*number]).collect(),
                    from,
                    to: seqs[FACTS - 1],
                    first_new_output,
                    after: None,
                    limit: 0,
                };
                let limit = random.0.random_range(1..4);
                is_same_both_ways(&*store, &delta, limit).await;
            }
        }
    }
    // There are two ways to new comments on old posts.
    let site = fact("Site", 1, &[]);
    let posts = [1, 2].map(|n| fact("Post", n, &[("site", &site)]));
    let comments = [1, 2, 3, 4].map(|n| fact("Comment", n, &[("post", &posts[n % 2])]));
    let at = save(&*store, &[&[site], &posts[..], &comments].concat()).await;
    let delta = DeltaQuery {
        query: query(&crate::specifications::comments()),
        given: vec![at[0]],
        from: at[2],
        to: at[6],
        first_new_output: 1,
        after: None,
        limit: 0,
    };
    let (down, up) = is_same_both_ways(&*store, &delta, 3).await;
    assert_eq!((down.len(), up.len()), (4, 4));
    assert_ne!(down[0].at.at, up[0].at.at, "there was one direction only");
}

async fn is_same_both_ways(
    store: &dyn Store,
    delta: &DeltaQuery,
    limit: usize,
) -> (Vec<TupleRow>, Vec<TupleRow>) {
    let down = by(ScanDirection::FromGiven, store, delta, limit).await;
    let up = by(ScanDirection::FromNew, store, delta, limit).await;
    assert_eq!(outputs(&down), outputs(&up), "{delta:#?}");
    (down, up)
}

pub(crate) async fn a_feed_without_its_given_is_empty_until_it_comes(database: Database) {
    let store = database.store().await;
    let query = query(&posts());
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

pub(crate) async fn a_given_that_comes_late_begins_its_feed_anew(database: Database) {
    let store = database.store().await;
    // What the given names is older than the given itself.
    let user = path(&[], "site", &[("creator", "User")]);
    let query = query(&(
        vec![label("site", "Site")],
        vec![found("user", "User", vec![user])],
    ));
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
    let strange = |kind: &str, role: &str| {
        let condition = path(&[(role, "Site")], "site", &[]);
        found("x", kind, vec![condition])
    };
    let missing = crate::specifications::exists(
        false,
        vec![found("y", "Y", vec![path(&[("r", "Post")], "x", &[])])],
    );
    let there = crate::specifications::exists(
        true,
        vec![found("y", "Y", vec![path(&[("r", "Post")], "x", &[])])],
    );
    let with = |condition| {
        let mut wanted = strange("Post", "site");
        wanted.conditions.push(condition);
        wanted
    };
    for (wanted, tuples) in [
        (strange("Strange", "site"), 0),
        (strange("Post", "strange"), 0),
        (with(there), 0),
        (with(missing), 1),
    ] {
        let query = query(&(vec![label("site", "Site")], vec![wanted]));
        let page = fresh_page(&*store, &query, &given, &Bookmark::Start, 10).await;
        assert_eq!(page.tuples.len(), tuples, "{query:?}");
    }
}

pub(crate) async fn a_page_that_ends_the_span_is_the_last(database: Database) {
    let store = database.store().await;
    let query = query(&comments());
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

pub(crate) async fn a_fresh_page_has_what_was_saved_before(database: Database) {
    let store = database.store().await;
    let query = query(&posts());
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

pub(crate) async fn a_bookmark_of_another_store_begins_anew(database: Database) {
    let store = database.store().await;
    let query = query(&posts());
    let site = fact("Site", 1, &[]);
    let post = fact("Post", 1, &[("site", &site)]);
    save(&*store, &[site.clone(), post.clone()]).await;
    let far = Bookmark::Finished(FAR);
    let page = fresh_page(&*store, &query, &[site.reference], &far, 10).await;
    assert_eq!(page.tuples, [[post.reference]]);
}
