//! A client that follows all feeds of a specification and has nothing else finds what the server
//! finds, after every single fact. No database: facts come one by one, and a feed delivers the
//! tuples that the newest is part of.

use std::collections::HashSet;

use rand::{RngExt, seq::IndexedRandom};
use wakeline_feed::{
    fact::{Fact, Reference},
    feeds,
    specification::{Specification, parser},
};

use crate::{
    facts::fact,
    plain_evaluator::{PlainEvaluator, sorted},
    random::{Random, seeds},
};

/// A type, the role of its predecessor, and the predecessor's type.
const KINDS: [(&str, &str, &str); 12] = [
    ("P", "s", "S"),
    ("D", "p", "P"),
    ("R", "d", "D"),
    ("X", "r", "R"),
    ("Y", "x", "X"),
    ("B", "p", "P"),
    ("C", "p", "P"),
    ("E", "c", "C"),
    ("F", "e", "E"),
    ("L", "c", "C"),
    ("M", "l", "L"),
    ("N", "m", "M"),
];

const P: &str = "p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d] }] }";
const C: &str = "c->p: P = p !E { e: E [e->c: C = c !E { f: F [f->e: E = e] }] }";
const L: &str = "l->c: C = c !E { m: M [m->l: L = l !E { n: N [n->m: M = m] }] }";

fn specifications() -> Vec<String> {
    vec![
        format!("(s: S) {{ p: P [{P}] c: C [c->p: P = p] }} => {{ p = #p c = #c }}"),
        format!("(s: S) {{ p: P [{P}] c: C [{C}] l: L [{L}] }} => {{ c = #c l = #l }}"),
        // Deleted once more, or for another reason, after it was restored.
        format!("(s: S) {{ p: P [{P}] c: C [c->p: P = p !E {{ e: E [e->c: C = c] }}] }} => #c"),
        format!("(s: S) {{ p: P [{P} !E {{ b: B [b->p: P = p] }}] }} => #p"),
        // A fact that must exist besides, before and after.
        format!("(s: S) {{ p: P [E {{ b: B [b->p: P = p] }} {P}] c: C [{C}] }} => #c"),
        format!("(s: S) {{ p: P [{P} E {{ c: C [{C}] }}] b: B [b->p: P = p] }} => #b"),
        // Restored at the fourth level.
        "(s: S) { p: P [p->s: S = s !E { d: D [d->p: P = p !E { r: R [r->d: D = d \
         !E { x: X [x->r: R = r !E { y: Y [y->x: X = x] }] }] }] }] c: C [c->p: P = p] } => #c"
            .to_owned(),
        // Collections of restored facts and of their successors.
        format!(
            "(s: S) {{ p: P [{P}] c: C [c->p: P = p] }} => {{ b = {{ b: B [b->p: P = p] }} \
             l = {{ l: L [{L}] }} }}"
        ),
        format!("(s: S) {{ p: P [{P}] }} => {{ all = {{ c: C [{C}] l: L [l->c: C = c] }} => #l }}"),
        format!(
            "(s: S) {{ p: P [{P}] b: B [b->p: P = p] }} => {{ b = #b all = {{ c: C [{C}] \
             l: L [{L}] }} => {{ l = #l all = {{ e: E [e->c: C = c] }} => #e }} }}"
        ),
    ]
}

#[test]
fn a_client_that_follows_all_feeds_finds_what_the_server_finds() {
    let mut results = 0;
    for seed in seeds(12) {
        let mut random = Random::new(seed);
        let facts = history(&mut random, 30);
        for text in specifications() {
            let specification = parser::parse(&text).unwrap();
            results += follow(&specification, &facts);
        }
    }
    assert!(results > 100, "{results} results are too few to show it");
}

/// The first is the given. There are few of a type, so that they are successors of one another.
fn history(random: &mut Random, many: usize) -> Vec<Fact> {
    let mut facts = vec![fact("S", 0, &[])];
    while facts.len() < many {
        let (kind, role, below) = KINDS[random.0.random_range(0..KINDS.len())];
        let above: Vec<Fact> = facts
            .iter()
            .filter(|fact| &*fact.reference.kind == below)
            .cloned()
            .collect();
        if let Some(above) = above.choose(&mut random.0) {
            facts.push(fact(kind, facts.len(), &[(role, above)]));
        }
    }
    facts
}

fn follow(specification: &Specification, facts: &[Fact]) -> usize {
    let given = [facts[0].reference.clone()];
    let feeds = feeds::of(specification, &given).unwrap();
    let mut loaded: HashSet<Reference> = HashSet::from(given);
    let mut results = 0;
    for many in 1..=facts.len() {
        let server = PlainEvaluator {
            facts: facts[..many].to_vec(),
        };
        let newest = &facts[many - 1].reference;
        for feed in &feeds {
            let tuples = server.tuples(&feed.specification, &[0]).into_iter();
            for one in tuples.filter(|tuple| tuple.contains(newest)).flatten() {
                load(&server, &one, &mut loaded);
            }
        }
        let client = PlainEvaluator {
            facts: facts[..many]
                .iter()
                .filter(|fact| loaded.contains(&fact.reference))
                .cloned()
                .collect(),
        };
        let wanted = server.read(specification, &[0]);
        results += wanted.len();
        assert_eq!(
            sorted(client.read(specification, &[0]).into()),
            sorted(wanted.into()),
            "{} after {many} of {facts:#?}",
            specification.describe()
        );
    }
    results
}

/// With its predecessors.
fn load(server: &PlainEvaluator, one: &Reference, into: &mut HashSet<Reference>) {
    if into.insert(one.clone()) {
        let mut facts = server.facts.iter();
        let found = facts.find(|fact| fact.reference == *one).unwrap();
        for (_, predecessor) in found.references() {
            load(server, predecessor, into);
        }
    }
}
