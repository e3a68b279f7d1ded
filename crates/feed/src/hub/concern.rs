//! From new facts to the givens that they can concern.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use wakeline_store::Error;

use crate::{
    query::Query,
    store::{Concern, ConcernQuery, LogEntry, MAX_CONCERNS, Seq, Store},
};

/// Facts times givens in one query.
const MAX_PAIRS: usize = 100_000;

/// Facts that have the type of a query's variable.
#[derive(Debug)]
pub(super) struct ConcernLookup {
    query: Arc<Query>,
    source: ConcernSource,
    is_page: bool,
}

#[derive(Debug)]
enum ConcernSource {
    /// Each given is a predecessor of the fact itself: the log has it.
    Log(Vec<Concern>),
    Store(ConcernQuery),
}

#[derive(Debug)]
pub(super) struct QueryConcerns {
    pub(super) query: Arc<Query>,
    pub(super) concerns: Vec<Concern>,
    /// Each concern's fact is a tuple by itself, and there are no other tuples: streams need not
    /// read them.
    pub(super) is_page: bool,
}

impl ConcernLookup {
    pub(super) fn new(
        query: Arc<Query>,
        variable: usize,
        entries: &[&LogEntry],
        watched: &HashMap<Vec<Seq>, impl Sized>,
    ) -> Self {
        let source = match direct_roles(&query, variable) {
            Some(roles) => ConcernSource::Log(
                entries
                    .iter()
                    .flat_map(|entry| direct(entry, &roles, watched))
                    .collect(),
            ),
            None => ConcernSource::Store(ConcernQuery {
                variable,
                facts: entries.iter().map(|entry| entry.seq).collect(),
                watched: if all_are_above(&query, variable) {
                    Vec::new()
                } else {
                    watched.keys().cloned().collect()
                },
                query: query.clone(),
            }),
        };
        let is_page = matches!(source, ConcernSource::Log(_)) && is_one_step(&query, variable);
        Self {
            query,
            source,
            is_page,
        }
    }

    /// `watched` returns the givens that streams of a query wait with, if they are needed.
    pub(super) async fn answer(
        self,
        store: &dyn Store,
        watched: impl Fn(&Query) -> Vec<Vec<Seq>>,
    ) -> Result<QueryConcerns, Error> {
        let concerns = match self.source {
            ConcernSource::Log(concerns) => concerns,
            ConcernSource::Store(query) => {
                let first = query.facts.iter().min().copied();
                match find(store, query, watched).await {
                    // This query fails for ever. If it failed the whole batch, no stream would get
                    // anything any more. So the streams of this query read for themselves.
                    Err(error @ Error::Failed(_)) => {
                        tracing::error!(%error, "the store cannot find which streams new facts concern, so they read for themselves");
                        first
                            .map(|fact| concerns_all_givens(&self.query, fact))
                            .into_iter()
                            .collect()
                    }
                    answer => answer?,
                }
            }
        };
        Ok(QueryConcerns {
            query: self.query,
            concerns,
            is_page: self.is_page,
        })
    }
}

/// Concerns all givens.
fn concerns_all_givens(query: &Query, fact: Seq) -> Concern {
    Concern {
        fact,
        given: vec![None; query.givens],
    }
}

async fn find(
    store: &dyn Store,
    query: ConcernQuery,
    watched: impl Fn(&Query) -> Vec<Vec<Seq>>,
) -> Result<Vec<Concern>, Error> {
    if !query.watched.is_empty() {
        return compare(store, query).await;
    }
    let concerns = store.concerns(query.clone()).await?;
    if concerns.len() < MAX_CONCERNS {
        return Ok(concerns);
    }
    // There were more. Facts with many predecessors multiply; the watched givens do not.
    let watched = watched(&query.query);
    if watched.is_empty() {
        return Ok(Vec::new());
    }
    compare(store, ConcernQuery { watched, ..query }).await
}

/// In parts, because every fact is compared with each of the givens.
async fn compare(store: &dyn Store, query: ConcernQuery) -> Result<Vec<Concern>, Error> {
    let together = (MAX_PAIRS / query.watched.len().max(1)).max(1);
    if query.facts.len() <= together {
        return store.concerns(query).await;
    }
    let mut concerns = Vec::new();
    for facts in query.facts.chunks(together) {
        let part = ConcernQuery {
            facts: facts.to_vec(),
            ..query.clone()
        };
        concerns.extend(store.concerns(part).await?);
    }
    Ok(concerns)
}

/// Whether a tuple is one fact whose only conditions are its givens.
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

/// A fact may have several predecessors under a role: every combination of them, or the watched
/// givens that are among them, whichever are fewer.
fn direct(
    entry: &LogEntry,
    roles: &[Arc<str>],
    watched: &HashMap<Vec<Seq>, impl Sized>,
) -> Vec<Concern> {
    let under = |role: &Arc<str>| -> Vec<Seq> {
        let found = entry.predecessors.iter().filter(|(name, _)| name == role);
        found.map(|(_, seq)| *seq).collect()
    };
    let choices: Vec<Vec<Seq>> = roles.iter().map(under).collect();
    let ways = choices.iter().map(Vec::len);
    let concern = |given: &[Seq]| Concern {
        fact: entry.seq,
        given: given.iter().copied().map(Some).collect(),
    };
    if ways.fold(1, usize::saturating_mul) > watched.len() {
        let choices = choices.into_iter().map(HashSet::from_iter);
        let choices: Vec<HashSet<Seq>> = choices.collect();
        let fits = |given: &&Vec<Seq>| {
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
        let longer = givens.iter().flat_map(|given: &Vec<Seq>| {
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

    /// Of three roles with thousands of predecessors each, only the watched givens are compared.
    #[test]
    fn predecessors_of_several_roles_are_not_combined() {
        let roles: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        let under = |role: &Arc<str>| {
            (0..MANY).map({
                let role = role.clone();
                move |seq| (role.clone(), seq)
            })
        };
        let entry = LogEntry {
            seq: MANY,
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
