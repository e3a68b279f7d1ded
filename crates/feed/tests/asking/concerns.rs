//! Which givens new facts concern.

use std::sync::Arc;

use wakeline_feed::{
    query::Query,
    specification::{Condition, Specification},
    store::{Concern, ConcernQuery, Seq},
};

use crate::{
    database::Database,
    facts::fact,
    random::{StoredFacts, seeds},
    saving::save,
    specifications::{COMMENTS, query},
};

const SEEDS: usize = 4;
const SPECIFICATIONS: usize = 60;
const FACTS: usize = 20;
/// Givens tried for a specification.
const GIVENS: usize = 12;

/// Feeds have no conditions that make a tuple appear later.
fn without_conditions(mut specification: Specification) -> Specification {
    let is_path = |condition: &Condition| matches!(condition, Condition::Path(_));
    for given in &mut specification.givens {
        given.conditions.clear();
    }
    for wanted in &mut specification.matches {
        wanted.conditions.retain(is_path);
    }
    specification
}

pub(crate) async fn the_newest_fact_of_a_tuple_concerns_its_givens(database: Database) {
    let store = database.store().await;
    let mut looked_up = 0;
    for seed in seeds(SEEDS) {
        let mut stored = StoredFacts::save(&*store, seed, FACTS).await;
        for _ in 0..SPECIFICATIONS {
            let specification = without_conditions(stored.random.specification(false));
            let query = Arc::new(Query::of_specification(&specification).unwrap());
            let givens: Vec<Vec<usize>> = (0..GIVENS)
                .filter_map(|_| stored.random.given(&specification, &stored.plain.facts))
                .collect();
            let seqs = |given: &Vec<usize>| given.iter().map(|n| stored.seqs[*n]).collect();
            let watched: Vec<Vec<Seq>> = givens.iter().map(seqs).collect();
            for (given, given_seqs) in givens.iter().zip(&watched) {
                for tuple in stored.plain.tuples(&specification, given) {
                    let tuple: Vec<Seq> = tuple.iter().map(|fact| stored.seq(fact)).collect();
                    let newest = *tuple.iter().max().unwrap();
                    // A stream waits for a newer given by its reference.
                    if given_seqs.iter().any(|given| *given >= newest) {
                        continue;
                    }
                    let outputs = query.outputs.iter().zip(&tuple);
                    for (&variable, _) in outputs.filter(|(_, seq)| **seq == newest) {
                        assert!(query.arrivals().contains(&variable), "{query:?}");
                        let lookup = ConcernQuery {
                            query: query.clone(),
                            variable,
                            facts: vec![newest],
                            watched: watched.clone(),
                        };
                        let concerns = store.concerns(lookup).await.unwrap();
                        looked_up += 1;
                        let is_it = |concern: &Concern| {
                            let mut pairs = concern.given.iter().zip(given_seqs);
                            concern.fact == newest
                                && pairs.all(|(found, given)| found.is_none_or(|one| one == *given))
                        };
                        assert!(
                            concerns.iter().any(is_it),
                            "{given_seqs:?} {newest} {concerns:?} {query:#?}"
                        );
                    }
                }
            }
        }
    }
    assert!(looked_up > 0, "no tuple was found");
}

pub(crate) async fn a_new_fact_concerns_the_given_above_it(database: Database) {
    let store = database.store().await;
    let (one, two) = (fact("Site", 1, &[]), fact("Site", 2, &[]));
    let post = |n, site| fact("Post", n, &[("site", site)]);
    let posts = [post(1, &one), post(2, &two)];
    let comments_of = |n, post| fact("Comment", n, &[("post", post)]);
    let new = [
        comments_of(1, &posts[0]),
        comments_of(2, &posts[1]),
        comments_of(3, &posts[1]),
    ];
    let sites = save(&*store, &[one, two]).await;
    save(&*store, &posts).await;
    let facts = save(&*store, &new).await;
    let lookup = ConcernQuery {
        query: query(COMMENTS),
        variable: 2,
        facts: facts.clone(),
        watched: Vec::new(),
    };
    let mut concerns = store.concerns(lookup).await.unwrap();
    concerns.sort_by_key(|concern| concern.fact);
    let concern = |fact: usize, site: usize| Concern {
        fact: facts[fact],
        given: vec![Some(sites[site])],
    };
    assert_eq!(concerns, [concern(0, 0), concern(1, 1), concern(2, 1)]);
}

/// Members of a group see its posts.
const POSTS_OF_GROUPS: &str = "(u: User) { m: Member [m->user: User = u]
    g: Group [g = m->group: Group] p: Post [p->group: Group = g] }";

pub(crate) async fn a_fact_beside_its_givens_concerns_the_watched_ones_only(database: Database) {
    let store = database.store().await;
    let users: Vec<_> = (0..4).map(|n| fact("User", n, &[])).collect();
    let groups: Vec<_> = (0..2).map(|n| fact("Group", n, &[])).collect();
    let seqs = save(&*store, &users).await;
    save(&*store, &groups).await;
    // The first three are in the first group, the last is in the second.
    for (n, user) in users.iter().enumerate() {
        let group = &groups[n / 3];
        let member = fact("Member", n, &[("group", group), ("user", user)]);
        save(&*store, &[member]).await;
    }
    let post = fact("Post", 1, &[("group", &groups[0])]);
    let post = save(&*store, &[post]).await[0];
    let query = query(POSTS_OF_GROUPS);
    let lookup = ConcernQuery {
        variable: query.outputs[2],
        query,
        facts: vec![post],
        watched: vec![vec![seqs[3]], vec![seqs[1]], vec![seqs[0]]],
    };
    let concerns = store.concerns(lookup).await.unwrap();
    let mut givens: Vec<_> = concerns.into_iter().map(|concern| concern.given).collect();
    givens.sort();
    assert_eq!(givens, [[Some(seqs[0])], [Some(seqs[1])]]);
}

pub(crate) async fn an_unrelated_given_is_left_open(database: Database) {
    let store = database.store().await;
    let (site, user) = (fact("Site", 1, &[]), fact("User", 1, &[]));
    let post = fact("Post", 1, &[("site", &site)]);
    let seqs = save(&*store, &[site, user, post]).await;
    let query =
        query("(s: Site, u: User) { p: Post [p->site: Site = s] l: Like [l->user: User = u] }");
    let lookup = ConcernQuery {
        variable: query.outputs[0],
        query,
        facts: vec![seqs[2]],
        watched: Vec::new(),
    };
    // The type of the other match is not stored at all: that must not hide the given of this one.
    let concerns = store.concerns(lookup).await.unwrap();
    assert_eq!(concerns[0].given, [Some(seqs[0]), None]);
}
