//! From new facts to the givens that they can concern.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use wakeline_store::Error;

use crate::{
    query::Query,
    store::{Concern, Concerned, LogEntry, MAX_CONCERNS, Position, Store},
};

/// Facts times givens in one question.
const MAX_PAIRS: usize = 100_000;

/// Facts that fit a place in a query.
#[derive(Debug)]
pub(super) struct Task {
    query: Arc<Query>,
    how: How,
    is_whole: bool,
}

#[derive(Debug)]
enum How {
    /// Each given is a predecessor of the fact itself: the log has it.
    Known(Vec<Concern>),
    Asked(Concerned),
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) query: Arc<Query>,
    pub(super) concerns: Vec<Concern>,
    /// Each concern is a tuple, which is the fact, and there are no others: nothing has to be looked
    /// for.
    pub(super) is_whole: bool,
}

impl Task {
    pub(super) fn new(
        query: Arc<Query>,
        variable: usize,
        entries: &[&LogEntry],
        watched: &HashMap<Vec<Position>, impl Sized>,
    ) -> Self {
        let how = match direct_roles(&query, variable) {
            Some(roles) => How::Known(
                entries
                    .iter()
                    .flat_map(|entry| direct(entry, &roles, watched))
                    .collect(),
            ),
            None => How::Asked(Concerned {
                variable,
                facts: entries.iter().map(|entry| entry.position).collect(),
                watched: if all_are_above(&query, variable) {
                    Vec::new()
                } else {
                    watched.keys().cloned().collect()
                },
                query: query.clone(),
            }),
        };
        let is_whole = matches!(how, How::Known(_)) && is_one_step(&query, variable);
        Self {
            query,
            how,
            is_whole,
        }
    }

    /// `watched` says with which givens somebody waits for a query, where that has to be known.
    pub(super) async fn answer(
        self,
        store: &dyn Store,
        watched: impl Fn(&Query) -> Vec<Vec<Position>>,
    ) -> Result<Found, Error> {
        let concerns = match self.how {
            How::Known(concerns) => concerns,
            How::Asked(asked) => {
                let first = asked.facts.iter().min().copied();
                match ask(store, asked, watched).await {
                    // This question and no other: it would be refused for ever, and all others of
                    // these facts with it. Whom it was for, look for themselves.
                    Err(error @ Error::Failed(_)) => {
                        tracing::error!(%error, "which streams new facts concern cannot be asked");
                        first
                            .map(|fact| any(&self.query, fact))
                            .into_iter()
                            .collect()
                    }
                    answer => answer?,
                }
            }
        };
        Ok(Found {
            query: self.query,
            concerns,
            is_whole: self.is_whole,
        })
    }
}

/// Whatever is given.
fn any(query: &Query, fact: Position) -> Concern {
    Concern {
        fact,
        given: vec![None; query.givens],
    }
}

async fn ask(
    store: &dyn Store,
    asked: Concerned,
    watched: impl Fn(&Query) -> Vec<Vec<Position>>,
) -> Result<Vec<Concern>, Error> {
    if !asked.watched.is_empty() {
        return compare(store, asked).await;
    }
    let concerns = store.concerned(asked.clone()).await?;
    if concerns.len() < MAX_CONCERNS {
        return Ok(concerns);
    }
    // There were more. Facts with many predecessors multiply; those who wait do not.
    let watched = watched(&asked.query);
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    compare(store, Concerned { watched, ..asked }).await
}

/// In parts: every fact is compared with each of the givens.
async fn compare(store: &dyn Store, asked: Concerned) -> Result<Vec<Concern>, Error> {
    let together = (MAX_PAIRS / asked.watched.len().max(1)).max(1);
    if asked.facts.len() <= together {
        return store.concerned(asked).await;
    }
    let mut concerns = Vec::new();
    for facts in asked.facts.chunks(together) {
        let part = Concerned {
            facts: facts.to_vec(),
            ..asked.clone()
        };
        concerns.extend(store.concerned(part).await?);
    }
    Ok(concerns)
}

/// Whether a tuple is one fact, and all that is asked of it is which givens it has.
fn is_one_step(query: &Query, variable: usize) -> bool {
    query.outputs == [variable]
        && query.variables.len() == query.givens + 1
        && query.edges.len() == query.givens
        && query.equals.is_empty()
        && query.conditions.is_empty()
}

/// The role under which `variable` has each given, if it has all of them itself.
fn direct_roles(query: &Query, variable: usize) -> Option<Vec<Arc<str>>> {
    (0..query.givens)
        .map(|given| {
            let edge = query
                .edges
                .iter()
                .find(|edge| edge.successor == variable && edge.predecessor == given)?;
            Some(edge.role.clone())
        })
        .collect()
}

/// A fact may have several predecessors under a role: every choice of them, or of what is watched
/// where that is less.
fn direct(
    entry: &LogEntry,
    roles: &[Arc<str>],
    watched: &HashMap<Vec<Position>, impl Sized>,
) -> Vec<Concern> {
    let under = |role: &Arc<str>| -> Vec<Position> {
        let found = entry.predecessors.iter().filter(|(name, _)| name == role);
        found.map(|(_, position)| *position).collect()
    };
    let choices: Vec<Vec<Position>> = roles.iter().map(under).collect();
    let ways = choices.iter().map(Vec::len);
    let concern = |given: &[Position]| Concern {
        fact: entry.position,
        given: given.iter().copied().map(Some).collect(),
    };
    if ways.fold(1, usize::saturating_mul) > watched.len() {
        let choices = choices.into_iter().map(HashSet::from_iter);
        let choices: Vec<HashSet<Position>> = choices.collect();
        let fits = |given: &&Vec<Position>| {
            let mut pairs = given.iter().zip(&choices);
            pairs.all(|(given, choices)| choices.contains(given))
        };
        return watched
            .keys()
            .filter(fits)
            .map(|given| concern(given))
            .collect();
    }
    let mut givens = vec![Vec::with_capacity(roles.len())];
    for choices in &choices {
        let longer = givens.iter().flat_map(|given: &Vec<Position>| {
            choices.iter().map(move |choice| {
                let mut given = given.clone();
                given.push(*choice);
                given
            })
        });
        givens = longer.collect();
    }
    givens.iter().map(|given| concern(given)).collect()
}

/// Whether every given is found by going from predecessor to predecessor.
fn all_are_above(query: &Query, variable: usize) -> bool {
    let mut above = vec![false; query.variables.len()];
    let mut open = vec![variable];
    while let Some(next) = open.pop() {
        for edge in query.edges.iter().filter(|edge| edge.successor == next) {
            if !std::mem::replace(&mut above[edge.predecessor], true) {
                open.push(edge.predecessor);
            }
        }
    }
    above[..query.givens].iter().all(|is_above| *is_above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::{Hash, Reference};

    const MANY: i64 = 3_000;

    /// Of three roles with thousands of predecessors each, only what somebody waits with is made.
    #[test]
    fn predecessors_do_not_multiply() {
        let roles: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        let under = |role: &Arc<str>| {
            (0..MANY).map({
                let role = role.clone();
                move |position| (role.clone(), position)
            })
        };
        let entry = LogEntry {
            position: MANY,
            reference: Reference {
                kind: "Many".into(),
                hash: Hash([0; 64]),
            },
            predecessors: roles.iter().flat_map(under).collect(),
        };
        let givens = [[1, 2, 3], [4, 4, 4], [1, 2, MANY]].map(|given| (given.to_vec(), ()));
        let found = direct(&entry, &roles, &HashMap::from(givens));
        let mut found: Vec<_> = found.into_iter().map(|concern| concern.given).collect();
        found.sort();
        assert_eq!(
            found,
            [[1, 2, 3], [4, 4, 4]].map(|given| given.map(Some).to_vec())
        );
    }
}
