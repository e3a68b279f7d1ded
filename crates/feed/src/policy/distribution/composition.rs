//! A feed that no rule shares as a whole, but several share rule_feed by rule_feed.
//!
//! Every edge of the feed must belong to a rule_feed, and a rule_feed begins at givens of the feed or at
//! facts of rule_feeds before it. A rule for some users only covers a rule_feed that begins at the feed's
//! own givens, for which it was checked that the rule admits this user: which facts come further on
//! is not known. (Upstream lets a rule that admits the user for one fact of a type admit them for
//! all.)

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::skeleton::{Edge, NotExists, Skeleton};

/// States that are tried: with more the feed counts as not covered.
const MAX_STATES: usize = 2_000;

/// A rule's feed, and the inputs from which on it may be used: any, or facts of the target.
#[derive(Debug)]
pub(super) struct RuleFeed<'a> {
    pub(super) skeleton: &'a Skeleton,
    pub(super) from: StartPoints,
}

#[derive(Debug)]
pub(super) enum StartPoints {
    Anywhere,
    /// The target's facts for each input.
    Givens(HashSet<Vec<usize>>),
}

pub(super) fn covers(target: &Skeleton, rule_feeds: &[RuleFeed<'_>]) -> bool {
    if target.edges.is_empty() && target.not_exists_conditions.is_empty() {
        return false;
    }
    // A rule with negative conditions shares only some tuples, so it cannot cover a part of others.
    let rule_feeds: Vec<&RuleFeed<'_>> = rule_feeds
        .iter()
        .filter(|rule_feed| {
            let skeleton = rule_feed.skeleton;
            skeleton.not_exists_conditions.is_empty() && !skeleton.edges.is_empty()
        })
        .collect();
    let mut left = MAX_STATES;
    let mut cover = Cover {
        target,
        rule_feeds: &rule_feeds,
        seen: HashSet::new(),
        left: &mut left,
    };
    let inputs = target.inputs.iter().map(|input| input.fact_index);
    cover.rest(State::of(target, inputs.collect()))
}

/// The part that is still to be covered, and the facts from which it starts.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    live: BTreeSet<usize>,
    edges: BTreeSet<usize>,
    conditions: BTreeSet<usize>,
}

impl State {
    fn of(target: &Skeleton, live: BTreeSet<usize>) -> Self {
        Self {
            live,
            edges: target.edges.iter().map(|edge| edge.edge_index).collect(),
            conditions: (0..target.not_exists_conditions.len()).collect(),
        }
    }
}

struct Cover<'a> {
    target: &'a Skeleton,
    rule_feeds: &'a [&'a RuleFeed<'a>],
    seen: HashSet<State>,
    left: &'a mut usize,
}

impl Cover<'_> {
    fn rest(&mut self, state: State) -> bool {
        if state.edges.is_empty() && state.conditions.is_empty() {
            return true;
        }
        if *self.left == 0 || !self.seen.insert(state.clone()) {
            return false;
        }
        *self.left -= 1;
        for &index in &state.conditions {
            let condition = &self.target.not_exists_conditions[index];
            if let Some(start) = start_fact(condition, &state.live)
                && self.condition(condition, start)
            {
                let mut next = state.clone();
                next.conditions.remove(&index);
                if self.rest(next) {
                    return true;
                }
            }
        }
        for rule_feed in self.rule_feeds {
            for place in places(rule_feed, self.target, &state) {
                let mut next = state.clone();
                next.live.extend(place.values());
                for edge in &rule_feed.skeleton.edges {
                    if let Some(index) = edge_at(edge, &place, self.target) {
                        next.edges.remove(&index);
                    }
                }
                if next.edges.len() < state.edges.len() && self.rest(next) {
                    return true;
                }
            }
        }
        false
    }

    /// That a fact does not exist is information, too, so the condition must be shared as well.
    fn condition(&mut self, condition: &NotExists, start: usize) -> bool {
        let mut facts = BTreeSet::from([start]);
        facts_of(condition, &mut facts);
        let of_target = self.target.facts.iter();
        let inner = Skeleton {
            edges: condition.edges.clone(),
            facts: of_target
                .filter(|fact| facts.contains(&fact.fact_index))
                .cloned()
                .collect(),
            not_exists_conditions: condition.not_exists_conditions.clone(),
            ..Skeleton::default()
        };
        let mut cover = Cover {
            target: &inner,
            rule_feeds: self.rule_feeds,
            seen: HashSet::new(),
            left: &mut *self.left,
        };
        cover.rest(State::of(&inner, BTreeSet::from([start])))
    }
}

fn start_fact(condition: &NotExists, live: &BTreeSet<usize>) -> Option<usize> {
    let edges = condition.edges.iter();
    let mut ends = edges.flat_map(|edge| [edge.predecessor_fact_index, edge.successor_fact_index]);
    ends.find(|fact| live.contains(fact))
}

fn facts_of(condition: &NotExists, into: &mut BTreeSet<usize>) {
    for edge in &condition.edges {
        into.extend([edge.predecessor_fact_index, edge.successor_fact_index]);
    }
    for inner in &condition.not_exists_conditions {
        facts_of(inner, into);
    }
}

/// Which fact of the target stands for each fact of a rule_feed.
type FactMapping = BTreeMap<usize, usize>;

/// All ways to lay a rule_feed onto what is not covered yet.
fn places(rule_feed: &RuleFeed<'_>, target: &Skeleton, state: &State) -> Vec<FactMapping> {
    let mut places = vec![FactMapping::new()];
    for input in &rule_feed.skeleton.inputs {
        places = places
            .iter()
            .flat_map(|place| {
                let free = state.live.iter().filter(|live| {
                    target.kind(**live) == rule_feed.skeleton.kind(input.fact_index)
                        && !place.values().any(|used| used == *live)
                });
                free.map(|live| with(place, [(input.fact_index, *live)]))
            })
            .collect();
    }
    places.retain(|place| is_allowed(rule_feed, place));
    let mut found = Vec::new();
    for place in places {
        lay(
            rule_feed.skeleton,
            target,
            state,
            place,
            &BTreeSet::new(),
            &mut found,
        );
    }
    found
}

fn is_allowed(rule_feed: &RuleFeed<'_>, place: &FactMapping) -> bool {
    match &rule_feed.from {
        StartPoints::Anywhere => !rule_feed.skeleton.inputs.is_empty(),
        StartPoints::Givens(admitted) => {
            let inputs = rule_feed.skeleton.inputs.iter();
            let at: Vec<usize> = inputs.map(|input| place[&input.fact_index]).collect();
            admitted.contains(&at)
        }
    }
}

/// Lays the edges one by one, each where one of its ends already is.
fn lay(
    rule_feed: &Skeleton,
    target: &Skeleton,
    state: &State,
    place: FactMapping,
    laid: &BTreeSet<usize>,
    found: &mut Vec<FactMapping>,
) {
    if found.len() >= MAX_STATES {
        return;
    }
    if laid.len() == rule_feed.edges.len() {
        found.push(place);
        return;
    }
    let next = rule_feed.edges.iter().find(|edge| {
        !laid.contains(&edge.edge_index)
            && (place.contains_key(&edge.predecessor_fact_index)
                || place.contains_key(&edge.successor_fact_index))
    });
    let Some(edge) = next else { return };
    let mut laid = laid.clone();
    laid.insert(edge.edge_index);
    for onto in &target.edges {
        let ends = [
            (edge.predecessor_fact_index, onto.predecessor_fact_index),
            (edge.successor_fact_index, onto.successor_fact_index),
        ];
        let fits = ends.iter().all(|(ours, theirs)| {
            rule_feed.kind(*ours) == target.kind(*theirs)
                && match place.get(ours) {
                    Some(known) => known == theirs,
                    None => !place.values().any(|used| used == theirs),
                }
        });
        if onto.role == edge.role && fits && state.edges.contains(&onto.edge_index) {
            lay(rule_feed, target, state, with(&place, ends), &laid, found);
        }
    }
}

fn with<const N: usize>(place: &FactMapping, more: [(usize, usize); N]) -> FactMapping {
    let mut place = place.clone();
    place.extend(more);
    place
}

fn edge_at(edge: &Edge, place: &FactMapping, target: &Skeleton) -> Option<usize> {
    let predecessor = place.get(&edge.predecessor_fact_index)?;
    let successor = place.get(&edge.successor_fact_index)?;
    let mut edges = target.edges.iter();
    let found = edges.find(|onto| {
        onto.predecessor_fact_index == *predecessor
            && onto.successor_fact_index == *successor
            && onto.role == edge.role
    });
    found.map(|onto| onto.edge_index)
}
