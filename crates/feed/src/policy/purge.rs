//! Removals: if a root has facts that match a purge condition, all its descendants are removed but
//! those facts.

mod compliance;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::Instant;
use wakeline_bus::Bus;
use wakeline_store::Error;

use super::{InvalidRule, pattern::Pattern};
use crate::{
    fact::{Kind, Reference},
    query::Query,
    specification::Specification,
    store::{Seq, Store, TuplesQuery},
};

/// Roots that are checked by one query.
const ROOTS: usize = 500;
/// Facts that are removed in one step.
const FACTS: usize = 5_000;
/// Facts that a root is purged for; more of them are removed like all else.
const TRIGGERS: usize = 10_000;
/// Tuples that are read at once.
const TUPLES: usize = 1_000;
/// The pauses between checks whether the saves that were under way have ended: they double.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A save is waited for no longer than this: its transaction has probably been left open.
const PATIENCE: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct Purge {
    specifications: Vec<Specification>,
    conditions: Vec<Condition>,
}

#[derive(Debug)]
struct Condition {
    root: Kind,
    /// From the root on.
    query: Arc<Query>,
    /// From a new fact of this type on to the root.
    by_kind: HashMap<Kind, Vec<Arc<Query>>>,
}

impl Purge {
    pub fn new(specifications: &[Specification]) -> Result<Self, InvalidRule> {
        let conditions = specifications.iter().map(|one| {
            Condition::new(one)
                .map_err(|reason| InvalidRule(format!("purge {}: {reason}", one.describe())))
        });
        Ok(Self {
            conditions: conditions.collect::<Result<_, _>>()?,
            specifications: specifications.to_vec(),
        })
    }

    /// Whether a specification excludes the facts that are purged; the error is the text of a 400.
    pub fn check(&self, specification: &Specification) -> Result<(), InvalidRule> {
        let missing = compliance::missing(specification, &self.specifications);
        if missing.is_empty() {
            Ok(())
        } else {
            Err(InvalidRule(missing.join("\n")))
        }
    }

    /// Purges the roots whose condition holds now because of facts that were just saved. Returns
    /// how many facts were removed.
    pub async fn saved(
        &self,
        store: &dyn Store,
        bus: &Arc<Bus>,
        new: &[(Reference, Seq)],
    ) -> Result<usize, Error> {
        let mut removed = Vec::new();
        for condition in &self.conditions {
            let mut roots = Vec::new();
            for (kind, queries) in &condition.by_kind {
                let facts = new.iter().filter(|(reference, _)| reference.kind == *kind);
                let facts: Vec<Vec<Seq>> = facts.map(|(_, at)| vec![*at]).collect();
                for chunk in facts.chunks(ROOTS) {
                    for query in queries {
                        roots.extend(tuple_facts(store, query, chunk, usize::MAX).await?);
                    }
                }
            }
            roots.sort_unstable();
            roots.dedup();
            for root in roots {
                removed.extend(condition.purge(store, bus, root).await?);
            }
        }
        finish(store, bus, removed).await
    }

    /// Purges all roots whose condition holds: for conditions that are newer than the facts. Goes
    /// on in small steps; to be run beside all else.
    pub async fn all(&self, store: &dyn Store, bus: &Arc<Bus>) -> Result<usize, Error> {
        let mut total = 0;
        for condition in &self.conditions {
            let mut after = 0;
            loop {
                let roots = store
                    .facts_of_type(condition.root.clone(), after, ROOTS)
                    .await?;
                let Some(last) = roots.last() else { break };
                after = *last;
                let given = roots.iter().map(|root| vec![*root]).collect();
                let held = store.matches(condition.query.clone(), given).await?;
                let mut removed = Vec::new();
                for (root, _) in roots.into_iter().zip(held).filter(|(_, holds)| *holds) {
                    removed.extend(condition.purge(store, bus, root).await?);
                }
                total += finish(store, bus, removed).await?;
            }
        }
        Ok(total)
    }
}

impl Condition {
    fn new(specification: &Specification) -> Result<Self, String> {
        let [given] = specification.givens.as_slice() else {
            return Err("A purge specification must have exactly one given.".to_owned());
        };
        let root = given.label.kind.clone();
        for one in &specification.matches {
            if let Some(negated) = one.existentials().find(|condition| !condition.exists) {
                let kinds = negated.matches.iter().map(|one| &*one.unknown.kind);
                let kinds: Vec<&str> = kinds.collect();
                return Err(format!(
                    "A specified purge condition would reverse the purge of {root} with {}.",
                    kinds.join(", ")
                ));
            }
        }
        let pattern = Pattern::of(specification).map_err(|error| error.to_string())?;
        let kinds = &pattern.query().variables;
        if kinds.len() < 2 {
            return Err("a purge condition must find something".to_owned());
        }
        let mut by_kind: HashMap<Kind, Vec<Arc<Query>>> = HashMap::new();
        for (variable, kind) in kinds.iter().enumerate().skip(1) {
            let query = pattern.part_from(&[variable], |_| true, &[0]);
            by_kind.entry(kind.clone()).or_default().push(query);
        }
        Ok(Self {
            root,
            query: Arc::new(pattern.query().clone()),
            by_kind,
        })
    }

    async fn purge(&self, store: &dyn Store, bus: &Arc<Bus>, root: Seq) -> Result<Vec<Seq>, Error> {
        let keep = tuple_facts(store, &self.query, &[vec![root]], TRIGGERS).await?;
        let mut removed = Vec::new();
        // Another purge may have removed the fact since.
        if keep.is_empty() {
            return Ok(removed);
        }
        loop {
            let gone = store.purge(root, keep.clone(), FACTS);
            let gone = gone.commit(bus).await?;
            let is_done = gone.len() < FACTS;
            removed.extend(gone);
            if is_done {
                return Ok(removed);
            }
        }
    }
}

/// All facts of all tuples, up to so many tuples.
async fn tuple_facts(
    store: &dyn Store,
    query: &Arc<Query>,
    givens: &[Vec<Seq>],
    most: usize,
) -> Result<Vec<Seq>, Error> {
    let mut tuples_query = TuplesQuery {
        query: query.clone(),
        givens: givens.into(),
        to: Seq::MAX,
        cursor: None,
        limit: TUPLES.min(most),
    };
    let mut facts = Vec::new();
    let mut tuples = 0;
    loop {
        let page = store.tuples_of(tuples_query.clone()).await?;
        tuples += page.len();
        let outputs = page.iter().flat_map(|one| &one.row.outputs);
        facts.extend(outputs.map(|(at, _)| *at));
        match page.into_iter().last() {
            Some(last) if tuples < most => tuples_query.cursor = Some((last.given, last.row.at)),
            _ => break,
        }
    }
    facts.sort_unstable();
    facts.dedup();
    Ok(facts)
}

/// Saves that were under way during the purge may have been onto what it removed.
async fn finish(store: &dyn Store, bus: &Arc<Bus>, removed: Vec<Seq>) -> Result<usize, Error> {
    if removed.is_empty() {
        return Ok(0);
    }
    let fence = store.fence().commit(bus).await?;
    let deadline = Instant::now() + PATIENCE;
    let mut pause = FIRST_PAUSE;
    let mut is_settled = store.horizon().await?.settled >= fence;
    while !is_settled && Instant::now() < deadline {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        is_settled = store.horizon().await?.settled >= fence;
    }
    let count = removed.len() + store.purge_orphans(removed).commit(bus).await?;
    if is_settled {
        return Ok(count);
    }
    let text = "a transaction has been open for too long: what it saves onto purged facts stays";
    Err(Error::Failed(text.into()))
}
