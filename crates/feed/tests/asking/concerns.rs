//! Whom new facts concern.

use std::sync::Arc;

use wakeline_feed::{
    fact::Reference,
    query::Query,
    specification::{Condition, Match, Specification},
    store::{Concern, ConcernQuery, Seq},
};

use crate::{
    database::Database,
    facts::{fact, save},
    plain_evaluator::PlainEvaluator,
    random::{Random, seeds},
    specifications::{comments, found, label, path},
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
    let mut asked = 0;
    for seed in seeds(SEEDS) {
        let mut random = Random::new(seed);
        let facts = random.facts(FACTS, seed);
        let seqs = save(&*store, &facts).await;
        let plain = PlainEvaluator { facts };
        let place = |reference: &Reference| {
            let number = plain
                .facts
                .iter()
                .position(|fact| fact.reference == *reference);
            seqs[number.unwrap()]
        };
        for _ in 0..SPECIFICATIONS {
            let specification = without_conditions(random.specification(false));
            let query = Arc::new(Query::of_specification(&specification).unwrap());
            let givens: Vec<Vec<usize>> = (0..GIVENS)
                .filter_map(|_| random.given(&specification, &plain.facts))
                .collect();
            let at = |given: &Vec<usize>| given.iter().map(|number| seqs[*number]).collect();
            let watched: Vec<Vec<Seq>> = givens.iter().map(at).collect();
            for given in &givens {
                let with: Vec<Seq> = at(given);
                for tuple in plain.tuples(&specification, given) {
                    let tuple: Vec<Seq> = tuple.iter().map(place).collect();
                    let newest = *tuple.iter().max().unwrap();
                    // A given that is newer is waited for in another way.
                    if with.iter().any(|given| *given >= newest) {
                        continue;
                    }
                    for (output, seq) in tuple.iter().enumerate() {
                        if *seq != newest {
                            continue;
                        }
                        let variable = query.outputs[output];
                        assert!(query.arrivals().contains(&variable), "{query:?}");
                        let question = ConcernQuery {
                            query: query.clone(),
                            variable,
                            facts: vec![newest],
                            watched: watched.clone(),
                        };
                        let said = store.concerns(question).await.unwrap();
                        asked += 1;
                        let is_told = |concern: &Concern| {
                            let mut pairs = concern.given.iter().zip(&with);
                            concern.fact == newest
                                && pairs.all(|(said, given)| said.is_none_or(|said| said == *given))
                        };
                        assert!(
                            said.iter().any(is_told),
                            "{with:?} {newest} {said:?} {query:#?}"
                        );
                    }
                }
            }
        }
    }
    assert!(asked > 0, "nothing was asked");
}

pub(crate) async fn a_fact_above_says_which_given(database: Database) {
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
    let (givens, matches) = comments();
    let query = Arc::new(Query::of(&givens, &matches).unwrap());
    let question = ConcernQuery {
        query,
        variable: 2,
        facts: facts.clone(),
        watched: Vec::new(),
    };
    let mut said = store.concerns(question).await.unwrap();
    said.sort_by_key(|concern| concern.fact);
    let concern = |fact: usize, site: usize| Concern {
        fact: facts[fact],
        given: vec![Some(sites[site])],
    };
    assert_eq!(said, [concern(0, 0), concern(1, 1), concern(2, 1)]);
}

/// Members of a group see its posts.
fn of_groups() -> Vec<Match> {
    vec![
        found(
            "member",
            "Member",
            vec![path(&[("user", "User")], "user", &[])],
        ),
        found(
            "group",
            "Group",
            vec![path(&[], "member", &[("group", "Group")])],
        ),
        found(
            "post",
            "Post",
            vec![path(&[("group", "Group")], "group", &[])],
        ),
    ]
}

pub(crate) async fn a_fact_aside_concerns_only_who_is_watched(database: Database) {
    let store = database.store().await;
    let users: Vec<_> = (0..4).map(|n| fact("User", n, &[])).collect();
    let groups: Vec<_> = (0..2).map(|n| fact("Group", n, &[])).collect();
    let at = save(&*store, &users).await;
    save(&*store, &groups).await;
    // The first three are in the first group, the last is in the second.
    for (n, user) in users.iter().enumerate() {
        let group = &groups[n / 3];
        let member = fact("Member", n, &[("group", group), ("user", user)]);
        save(&*store, &[member]).await;
    }
    let post = fact("Post", 1, &[("group", &groups[0])]);
    let post = save(&*store, &[post]).await[0];
    let query = Arc::new(Query::of(&[label("user", "User")], &of_groups()).unwrap());
    let question = ConcernQuery {
        variable: query.outputs[2],
        query,
        facts: vec![post],
        watched: vec![vec![at[3]], vec![at[1]], vec![at[0]]],
    };
    let said = store.concerns(question).await.unwrap();
    let mut said: Vec<_> = said.into_iter().map(|concern| concern.given).collect();
    said.sort();
    assert_eq!(said, [[Some(at[0])], [Some(at[1])]]);
}

pub(crate) async fn an_unrelated_given_is_left_open(database: Database) {
    let store = database.store().await;
    let (site, user) = (fact("Site", 1, &[]), fact("User", 1, &[]));
    let post = fact("Post", 1, &[("site", &site)]);
    let at = save(&*store, &[site, user, post]).await;
    let matches = [
        found("post", "Post", vec![path(&[("site", "Site")], "site", &[])]),
        found("like", "Like", vec![path(&[("user", "User")], "user", &[])]),
    ];
    let givens = [label("site", "Site"), label("user", "User")];
    let query = Arc::new(Query::of(&givens, &matches).unwrap());
    let question = ConcernQuery {
        variable: query.outputs[0],
        query,
        facts: vec![at[2]],
        watched: Vec::new(),
    };
    // The type of the other part is not stored at all: that must not hide what is asked.
    let said = store.concerns(question).await.unwrap();
    assert_eq!(said[0].given, [Some(at[0]), None]);
}
