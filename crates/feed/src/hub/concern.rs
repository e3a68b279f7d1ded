//! From new facts to the givens that they can concern.

use std::sync::Arc;

use wakeline_store::Error;

use crate::{
    query::Query,
    store::{Concern, Concerned, LogEntry, Position, Store},
};

/// Facts times givens in one question.
const MAX_PAIRS: usize = 100_000;

/// Facts that fit a place in a query.
#[derive(Debug)]
pub(super) struct Task {
    query: Arc<Query>,
    how: How,
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
}

impl Task {
    pub(super) fn new(
        query: Arc<Query>,
        variable: usize,
        entries: &[&LogEntry],
        watched: impl Fn() -> Vec<Vec<Position>>,
    ) -> Self {
        let how = match direct_roles(&query, variable) {
            Some(roles) => How::Known(
                entries
                    .iter()
                    .flat_map(|entry| direct(entry, &roles))
                    .collect(),
            ),
            None => How::Asked(Concerned {
                variable,
                facts: entries.iter().map(|entry| entry.position).collect(),
                watched: if all_are_above(&query, variable) {
                    Vec::new()
                } else {
                    watched()
                },
                query: query.clone(),
            }),
        };
        Self { query, how }
    }

    pub(super) async fn answer(self, store: &dyn Store) -> Result<Found, Error> {
        let concerns = match self.how {
            How::Known(concerns) => concerns,
            How::Asked(asked) => ask(store, asked).await?,
        };
        Ok(Found {
            query: self.query,
            concerns,
        })
    }
}

/// In parts: where givens cannot be found by going up, every fact is compared with each of them.
async fn ask(store: &dyn Store, asked: Concerned) -> Result<Vec<Concern>, Error> {
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

/// A fact may have several predecessors under a role: every choice of them.
fn direct(entry: &LogEntry, roles: &[Arc<str>]) -> Vec<Concern> {
    let mut concerns = vec![Concern {
        fact: entry.position,
        given: Vec::with_capacity(roles.len()),
    }];
    for role in roles {
        let choices: Vec<Position> = entry
            .predecessors
            .iter()
            .filter(|(name, _)| name == role)
            .map(|(_, position)| *position)
            .collect();
        concerns = concerns
            .into_iter()
            .flat_map(|concern| {
                choices.iter().map(move |choice| {
                    let mut concern = concern.clone();
                    concern.given.push(Some(*choice));
                    concern
                })
            })
            .collect();
    }
    concerns
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
