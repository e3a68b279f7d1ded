//! Reads all results of a specification at once, with its projections, for `/read`.

mod bare;
mod plan;
mod show;
mod value;

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use wakeline_store::Error as StoreError;

pub use self::{bare::bare_givens, plan::Plan, value::Value};
use self::{
    plan::{LevelPlan, PlanPart, Shape},
    show::ShownFacts,
};
use crate::{
    fact::Reference,
    paging::find_givens,
    query,
    store::{DeltaQuery, RowCursor, Seq, Store, TuplesQuery},
};

/// Results per chunk.
pub const CHUNK: usize = 250;
/// Rows that one chunk may need, those of nested collections counted too; with more, it is a
/// smaller chunk.
pub const MAX_ROWS: usize = 200_000;
/// Rows per question.
const PAGE: usize = 5_000;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Query(#[from] query::Error),
    #[error("the projection speaks of {0}, which is not defined")]
    UnknownLabel(Arc<str>),
    #[error("the number of start facts ({given}) does not equal the number of inputs ({wanted})")]
    Givens { given: usize, wanted: usize },
    #[error("a result of the specification has more than {0} parts; ask for less")]
    TooLarge(usize),
    #[error("a projected fact has more than {0} ancestors in a row; project its fields instead")]
    TooDeep(usize),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A fact of a tuple.
type LocatedFact = (Seq, Reference);

/// A tuple of one level, with the tuples of its collections.
struct Branch {
    /// Of all labels, those of the levels above too.
    tuple: Vec<LocatedFact>,
    /// By collection, in the order of the components.
    collections: Vec<Vec<Branch>>,
}

/// Results that come in chunks. Dropping it ends it.
#[derive(Debug)]
pub struct Reading {
    store: Arc<dyn Store>,
    plan: Arc<Plan>,
    given: Vec<LocatedFact>,
    to: Seq,
    cursor: Option<RowCursor>,
    is_done: bool,
    /// Results per chunk: fewer and fewer where they need too many rows.
    chunk: usize,
    max_rows: usize,
}

impl Reading {
    /// Results are of the facts that are stored now; if a given is not, there are none.
    pub async fn start(
        store: Arc<dyn Store>,
        plan: Arc<Plan>,
        given: Vec<Reference>,
    ) -> Result<Self, Error> {
        let top = &plan.top;
        if given.len() != top.query.givens {
            return Err(Error::Givens {
                given: given.len(),
                wanted: top.query.givens,
            });
        }
        let to = store.horizon().await?.last;
        let found = find_givens(&*store, &top.query, &given).await?;
        Ok(Self {
            is_done: found.is_none(),
            given: found.unwrap_or_default().into_iter().zip(given).collect(),
            to,
            cursor: None,
            chunk: CHUNK,
            max_rows: MAX_ROWS,
            store,
            plan,
        })
    }

    /// With other rows than [`MAX_ROWS`] in memory at once.
    #[must_use]
    pub fn with_rows(self, max_rows: usize) -> Self {
        Self { max_rows, ..self }
    }

    /// The next results; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<Value>>, Error> {
        let plan = self.plan.clone();
        let (branches, shown) = loop {
            let before = self.cursor.clone();
            let Some(tuples) = self.next_tuples(self.chunk).await? else {
                return Ok(None);
            };
            let count = tuples.len();
            match self.filled(tuples).await {
                Ok(filled) => break filled,
                Err(Error::TooLarge(_)) if count > 1 => {
                    self.chunk = count / 2;
                    self.cursor = before;
                    self.is_done = false;
                }
                Err(error) => return Err(error),
            }
        };
        branches
            .iter()
            .map(|branch| shown.value(&plan.top, branch))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// With their collections, and the facts that are shown.
    async fn filled(
        &self,
        tuples: Vec<Vec<LocatedFact>>,
    ) -> Result<(Vec<Branch>, ShownFacts), Error> {
        let (store, top) = (&*self.store, &self.plan.top);
        let mut left = RowBudget {
            rows: self.max_rows,
            of: self.max_rows,
        };
        left.take(tuples.len())?;
        let branches = fill(store, top, self.to, tuples, &mut left).await?;
        let shown = ShownFacts::load(store, top, &branches, self.max_rows).await?;
        Ok((branches, shown))
    }

    async fn next_tuples(&mut self, limit: usize) -> Result<Option<Vec<Vec<LocatedFact>>>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let delta = DeltaQuery {
            query: self.plan.top.query.clone(),
            given: self.given.iter().map(|(seq, _)| *seq).collect(),
            from: 0,
            to: self.to,
            first_new_output: 0,
            cursor: self.cursor.take(),
            limit,
        };
        let rows = self.store.delta_page(delta).await?;
        self.is_done = rows.len() < limit;
        self.cursor = rows.last().map(|row| row.at.clone());
        if rows.is_empty() {
            return Ok(None);
        }
        let tuple = |outputs: Vec<LocatedFact>| self.given.iter().cloned().chain(outputs).collect();
        Ok(Some(
            rows.into_iter().map(|row| tuple(row.outputs)).collect(),
        ))
    }
}

/// Rows that may still be read.
struct RowBudget {
    rows: usize,
    of: usize,
}

impl RowBudget {
    fn take(&mut self, rows: usize) -> Result<(), Error> {
        let left = self.rows.checked_sub(rows);
        self.rows = left.ok_or(Error::TooLarge(self.of))?;
        Ok(())
    }
}

/// Finds the collections of many tuples, level by level: a question per collection, not per tuple.
fn fill<'a>(
    store: &'a dyn Store,
    level: &'a LevelPlan,
    to: Seq,
    tuples: Vec<Vec<LocatedFact>>,
    left: &'a mut RowBudget,
) -> BoxFuture<'a, Result<Vec<Branch>, Error>> {
    async move {
        let mut branches: Vec<Branch> = tuples
            .into_iter()
            .map(|tuple| Branch {
                tuple,
                collections: Vec::new(),
            })
            .collect();
        let Shape::Composite(parts) = &level.shape else {
            return Ok(branches);
        };
        for (_, part) in parts {
            let PlanPart::Collection(inner) = part else {
                continue;
            };
            let (owners, tuples) = collection_tuples(store, inner, to, &branches, left).await?;
            let filled = fill(store, inner, to, tuples, left).await?;
            let mut collections: HashMap<usize, Vec<Branch>> = HashMap::new();
            for (owner, branch) in owners.into_iter().zip(filled) {
                collections.entry(owner).or_default().push(branch);
            }
            for (number, branch) in branches.iter_mut().enumerate() {
                let collection = collections.remove(&number).unwrap_or_default();
                branch.collections.push(collection);
            }
        }
        Ok(branches)
    }
    .boxed()
}

async fn collection_tuples(
    store: &dyn Store,
    level: &LevelPlan,
    to: Seq,
    parents: &[Branch],
    left: &mut RowBudget,
) -> Result<(Vec<usize>, Vec<Vec<LocatedFact>>), Error> {
    let seqs = |branch: &Branch| -> Vec<Seq> { branch.tuple.iter().map(|(at, _)| *at).collect() };
    let givens: Arc<[Vec<Seq>]> = parents.iter().map(seqs).collect();
    let (mut owners, mut tuples) = (Vec::new(), Vec::new());
    let mut cursor = None;
    loop {
        let query = TuplesQuery {
            query: level.query.clone(),
            givens: givens.clone(),
            to,
            cursor: cursor.take(),
            limit: PAGE,
        };
        let found = store.tuples_of(query).await?;
        left.take(found.len())?;
        let is_done = found.len() < PAGE;
        cursor = found.last().map(|last| (last.given, last.row.at.clone()));
        for each in found {
            let mut tuple = parents[each.given].tuple.clone();
            tuple.extend(each.row.outputs);
            owners.push(each.given);
            tuples.push(tuple);
        }
        if is_done {
            return Ok((owners, tuples));
        }
    }
}
