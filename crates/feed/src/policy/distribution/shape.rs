//! How the skeleton of a requested feed compares with one that a rule shares.
//!
//! Indexes are given in the order of discovery from the givens on, so that two walks that begin the
//! same way have the same indexes: facts and edges are compared by them.

use crate::skeleton::{Edge, NotExists, Skeleton};

/// The same rows. Outputs do not count: every fact of a row is shared.
pub(super) fn is_equal(rule: &Skeleton, target: &Skeleton) -> bool {
    is_same_set(&rule.facts, &target.facts, |one, other| one == other)
        && is_same_set(&rule.edges, &target.edges, |one, other| one == other)
        && is_same_set(
            &rule.not_exists_conditions,
            &target.not_exists_conditions,
            is_same_condition,
        )
}

/// The target's rows are parts of the rule's: what it leaves out are only predecessors, which every
/// fact brings along, and never a successor, which would have narrowed the rule's rows.
pub(super) fn contains(rule: &Skeleton, target: &Skeleton) -> bool {
    if !is_subset(&target.facts, &rule.facts, |one, other| one == other) {
        return false;
    }
    let is_kept = |index: usize| target.facts.iter().any(|fact| fact.fact_index == index);
    let narrows =
        |edge: &Edge| is_kept(edge.predecessor_fact_index) && !is_kept(edge.successor_fact_index);
    if rule.edges.iter().any(narrows) {
        return false;
    }
    let kept: Vec<Edge> = rule
        .edges
        .iter()
        .filter(|edge| is_kept(edge.predecessor_fact_index) && is_kept(edge.successor_fact_index))
        .cloned()
        .collect();
    is_same_set(&target.edges, &kept, |one, other| one == other)
        && is_subset(
            &rule.not_exists_conditions,
            &target.not_exists_conditions,
            is_same_condition,
        )
}

/// The target is what a rule shares with more conditions. That shares nothing: it only makes the
/// refusal's text more helpful.
pub(super) fn is_narrower(rule: &Skeleton, target: &Skeleton) -> bool {
    is_subset(&rule.facts, &target.facts, |one, other| one == other)
        && is_subset(&rule.edges, &target.edges, |one, other| one == other)
        && is_subset(
            &rule.not_exists_conditions,
            &target.not_exists_conditions,
            is_same_condition,
        )
        && (target.facts.len() > rule.facts.len()
            || target.edges.len() > rule.edges.len()
            || target.not_exists_conditions.len() > rule.not_exists_conditions.len())
}

/// Which input of the target stands for each of the rule's, as indexes into the target's givens, in
/// the order of the rule's inputs. More than one way where inputs can be exchanged and the rows
/// stay the same. (Upstream exchanges all inputs of one type, and so shares with the wrong user
/// where a rule has two givens of a type that play different parts.)
pub(super) fn bindings(rule: &Skeleton, target: &Skeleton) -> Vec<Vec<usize>> {
    let indexes: Vec<usize> = rule.inputs.iter().map(|input| input.fact_index).collect();
    let mut found = Vec::new();
    let mut left = MAX_EXCHANGES;
    exchange(&mut indexes.clone(), 0, &mut left, &mut |exchanged| {
        let moved = |index: usize| match indexes.iter().position(|one| *one == index) {
            Some(place) => exchanged[place],
            None => index,
        };
        if !is_kept_by(rule, &moved) {
            return;
        }
        let input_of = |index: &usize| {
            let mut inputs = target.inputs.iter();
            inputs.find(|input| input.fact_index == *index)
        };
        let bound = exchanged
            .iter()
            .map(|index| Some(input_of(index)?.input_index));
        found.extend(bound.collect::<Option<Vec<usize>>>());
    });
    found
}

/// Orders of inputs that are tried: those of five.
const MAX_EXCHANGES: usize = 120;

/// All orders, the given one first.
fn exchange(
    indexes: &mut Vec<usize>,
    from: usize,
    left: &mut usize,
    visit: &mut impl FnMut(&[usize]),
) {
    if from == indexes.len() {
        if *left > 0 {
            *left -= 1;
            visit(indexes);
        }
        return;
    }
    for with in from..indexes.len() {
        if *left == 0 {
            return;
        }
        indexes.swap(from, with);
        exchange(indexes, from + 1, left, visit);
        indexes.swap(from, with);
    }
}

/// Whether the skeleton is still the same, but for the order of its edges, with facts exchanged.
fn is_kept_by(skeleton: &Skeleton, moved: &impl Fn(usize) -> usize) -> bool {
    let mut facts = skeleton.facts.iter();
    facts.all(|fact| skeleton.kind(moved(fact.fact_index)) == Some(&fact.kind))
        && are_edges_kept(&skeleton.edges, moved)
        && are_conditions_kept(&skeleton.not_exists_conditions, moved)
}

fn are_edges_kept(edges: &[Edge], moved: &impl Fn(usize) -> usize) -> bool {
    edges.iter().all(|edge| {
        edges.iter().any(|other| {
            other.role == edge.role
                && other.predecessor_fact_index == moved(edge.predecessor_fact_index)
                && other.successor_fact_index == moved(edge.successor_fact_index)
        })
    })
}

fn are_conditions_kept(conditions: &[NotExists], moved: &impl Fn(usize) -> usize) -> bool {
    conditions.iter().all(|condition| {
        are_edges_kept(&condition.edges, moved)
            && are_conditions_kept(&condition.not_exists_conditions, moved)
    })
}

fn is_same_condition(one: &NotExists, other: &NotExists) -> bool {
    is_same_set(&one.edges, &other.edges, |one, other| one == other)
        && is_same_set(
            &one.not_exists_conditions,
            &other.not_exists_conditions,
            is_same_condition,
        )
}

fn is_same_set<T>(one: &[T], other: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    one.len() == other.len() && is_subset(one, other, is_same)
}

fn is_subset<T>(part: &[T], whole: &[T], is_same: impl Fn(&T, &T) -> bool) -> bool {
    part.iter()
        .all(|one| whole.iter().any(|other| is_same(one, other)))
}
