//! What a user may load: the facts that some rule's feed delivers to that user.
//!
//! For each fact of a feed that a rule shares there is one query, asked from that fact on: up and
//! down to the rule's givens and on to its users. A fact may be loaded if the query finds anything.
//! So a request costs one question for each type in it and each place of that type in a rule,
//! however many facts there are, and each statement follows the edges' indexes.
//!
//! It is sound: where the query finds something there are givens for which the rule's feed, or a
//! part of it that [`super::shape::contains`] allows, has the fact in a row and the rule admits the
//! user, who could ask for that very feed. It is also enough: a feed is only served if every fact
//! of its rows stands at such a place. What a feed leaves out of the rule's are predecessors, so
//! these are left out here too where the fact does not depend on them.

use std::collections::{BTreeMap, HashSet};

use super::{Distribution, intersection::projected, rule::LoadQuery};
use crate::{
    fact::{Kind, Reference},
    policy::{InvalidRule, SeqsByFact, pattern::Pattern},
    query::Query,
    specification::{Name, Specification},
    store::{Seq, Store},
};
use wakeline_store::Error;

/// The prefix of the names of a rule's users, so that no other label has them.
const OF_USERS: &str = "with ";

pub(super) fn loads(
    feed: &Specification,
    share: &Specification,
    users: Option<&Specification>,
) -> Result<Vec<LoadQuery>, InvalidRule> {
    let own = pattern(feed)?;
    let own_count = own.query().variables.len();
    let (whole, user) = match users {
        None => (own.clone(), None),
        Some(users) => {
            let whole = with_users(feed, share, users);
            let whole = pattern(&whole)?;
            let user = projected(users).map(|(label, _)| name_of(&label, share, users));
            let user = user.and_then(|label| whole.variable(&label));
            let user = user.ok_or_else(|| InvalidRule("the users' label is not known".into()))?;
            (whole, Some(user))
        }
    };
    // The variables of the feed alone come first in both, after the givens.
    let (before, after) = (own.query().givens, whole.query().givens);
    let moved = |variable: usize| {
        if variable < before {
            let name = &feed.givens[variable].label.name;
            whole.variable(name).unwrap_or(variable)
        } else {
            variable - before + after
        }
    };
    let mut loads = Vec::new();
    let mut seen = HashSet::new();
    for variable in 0..own_count {
        let needed: HashSet<usize> = needed(own.query(), variable)
            .into_iter()
            .map(moved)
            .collect();
        let feed_part: HashSet<usize> = (0..own_count).map(moved).collect();
        let is_kept = |one: usize| needed.contains(&one) || !feed_part.contains(&one);
        let root = moved(variable);
        let (roots, for_user) = match user {
            // This can only be the user's own fact, which they may load anyway.
            Some(user) if user == root => continue,
            Some(user) => (vec![root, user], true),
            None => (vec![root], false),
        };
        let query = whole.part_from(&roots, is_kept, &[]);
        if seen.insert(query.clone()) {
            loads.push(LoadQuery { query, for_user });
        }
    }
    Ok(loads)
}

fn pattern(specification: &Specification) -> Result<Pattern, InvalidRule> {
    Pattern::of(specification).map_err(|error| InvalidRule(error.to_string()))
}

/// The feed and the users of its rule in one, with all givens of the rule.
fn with_users(feed: &Specification, share: &Specification, users: &Specification) -> Specification {
    let renamed = users.renamed(|name| name_of(name, share, users));
    let mut givens = share.givens.clone();
    for (given, users) in givens.iter_mut().zip(renamed.givens) {
        given.conditions = users.conditions;
    }
    let matches = feed.matches.iter().cloned().chain(renamed.matches);
    Specification {
        givens,
        matches: matches.collect(),
        projection: renamed.projection,
    }
}

/// The name of a users' label beside the feed's: a given has the shared specification's name.
fn name_of(name: &Name, share: &Specification, users: &Specification) -> Name {
    let mut givens = users.givens.iter().zip(&share.givens);
    match givens.find(|(given, _)| given.label.name == *name) {
        Some((_, shared)) => shared.label.name.clone(),
        None => format!("{OF_USERS}{name}").into(),
    }
}

/// The variables without which the fact would not be delivered: the givens, what conditions speak
/// of, the way from the givens to the fact, and every successor of one of these.
fn needed(query: &Query, variable: usize) -> HashSet<usize> {
    let ways = ways(query);
    let mut needed = HashSet::new();
    let conditions = query.conditions.iter();
    let mut waiting: Vec<usize> = (0..query.givens).collect();
    waiting.extend(conditions.flat_map(|condition| condition.outer(query.variables.len())));
    waiting.push(variable);
    while let Some(one) = waiting.pop() {
        if !needed.insert(one) {
            continue;
        }
        waiting.extend(ways.get(&one));
        let edges = query.edges.iter();
        let successors = edges.filter(|edge| edge.predecessor == one);
        waiting.extend(successors.map(|edge| edge.successor));
        let equals = query.equals.iter();
        waiting.extend(equals.flat_map(|&(a, b)| match one {
            _ if one == a => Some(b),
            _ if one == b => Some(a),
            _ => None,
        }));
    }
    needed
}

/// From each variable the next one on the way to a given.
fn ways(query: &Query) -> BTreeMap<usize, usize> {
    let mut ways = BTreeMap::new();
    let mut order: Vec<usize> = (0..query.givens).collect();
    let mut next = 0;
    while let Some(&from) = order.get(next) {
        next += 1;
        for edge in query.edges.iter().filter(|edge| edge.touches(from)) {
            let other = edge.other(from);
            if !order.contains(&other) {
                order.push(other);
                ways.insert(other, from);
            }
        }
    }
    ways
}

impl Distribution {
    /// For each of the references whether the user may load it. One that is not stored may be
    /// loaded.
    pub async fn may_load(
        &self,
        store: &dyn Store,
        user: Option<&Reference>,
        references: &[Reference],
    ) -> Result<Vec<bool>, Error> {
        let found = store.find(references.to_vec()).await?;
        let user_seq = match user {
            Some(user) => SeqsByFact::find(store, std::iter::once(user))
                .await?
                .of(user),
            None => None,
        };
        let mut may: Vec<bool> = references
            .iter()
            .zip(&found)
            .map(|(reference, at)| at.is_none() || Some(reference) == user)
            .collect();
        let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (index, reference) in references.iter().enumerate() {
            if !may[index] {
                kinds.entry(reference.kind.clone()).or_default().push(index);
            }
        }
        for (kind, mut waiting) in kinds {
            for load in self.loads(&kind) {
                let Some(givens) = givens_of(load, &waiting, &found, user_seq) else {
                    continue;
                };
                let held = store.matches(load.query.clone(), givens).await?;
                for (index, holds) in waiting.iter().zip(held) {
                    may[*index] = holds;
                }
                waiting.retain(|index| !may[*index]);
                if waiting.is_empty() {
                    break;
                }
            }
        }
        self.with_ancestors(store, &found, &mut may).await?;
        Ok(may)
    }

    /// The ancestors of a fact that may be loaded may be loaded beside it.
    async fn with_ancestors(
        &self,
        store: &dyn Store,
        found: &[Option<Seq>],
        may: &mut [bool],
    ) -> Result<(), Error> {
        if may.iter().all(|may| *may) {
            return Ok(());
        }
        let allowed = found.iter().zip(may.iter()).filter(|(_, may)| **may);
        let allowed: Vec<Seq> = allowed.filter_map(|(at, _)| *at).collect();
        if allowed.is_empty() {
            return Ok(());
        }
        let closure: HashSet<Seq> = store.closure(allowed).await?.into_iter().collect();
        for (may, at) in may.iter_mut().zip(found) {
            *may = *may || at.is_some_and(|at| closure.contains(&at));
        }
        Ok(())
    }
}

fn givens_of(
    load: &LoadQuery,
    waiting: &[usize],
    found: &[Option<Seq>],
    user: Option<Seq>,
) -> Option<Vec<Vec<Seq>>> {
    let user = match load.for_user {
        true => Some(user?),
        false => None,
    };
    let facts = waiting.iter().map(|index| {
        let mut given = vec![found[*index].unwrap_or_default()];
        given.extend(user);
        given
    });
    Some(facts.collect())
}
