//! Reading a whole specification at once, with its projections, as `/read` and the policies do.

mod bare;
mod plan;
mod show;
mod value;

use std::{collections::HashMap, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use wakeline_store::Error as StoreError;

pub use self::{bare::bare_givens, plan::Plan, value::Value};
use self::{
    plan::{Level, Part, Shape},
    show::Shown,
};
use crate::{
    fact::Reference,
    paging::find_given,
    query,
    specification::Specification,
    store::{Cursor, Gather, Position, Slice, Store},
};

/// Results per chunk.
pub const CHUNK: usize = 250;
/// Rows that one chunk may need, those of nested collections counted too; with more, it is a smaller
/// chunk.
pub const MAX_ROWS: usize = 200_000;
/// Tuples that [`tuples`] gives.
pub const MAX_TUPLES: usize = 100_000;
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
    #[error("the specification has more than {0} results at once; ask for less")]
    TooMany(usize),
    #[error("a projected fact has more than {0} ancestors in a row; project its fields instead")]
    TooDeep(usize),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A fact of a tuple.
type Place = (Position, Reference);

/// A tuple of one level, with the tuples of its collections.
struct Branch {
    /// Of all labels, those of the levels above too.
    tuple: Vec<Place>,
    /// By collection, in the order of the components.
    collections: Vec<Vec<Branch>>,
}

/// Results that come in chunks. Dropping it ends it.
#[derive(Debug)]
pub struct Reading {
    store: Arc<dyn Store>,
    plan: Arc<Plan>,
    given: Vec<Place>,
    to: Position,
    after: Option<Cursor>,
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
        let found = find_given(&*store, &top.query, &given).await?;
        Ok(Self {
            is_done: found.is_none(),
            given: found.unwrap_or_default().into_iter().zip(given).collect(),
            to,
            after: None,
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
            let before = self.after.clone();
            let Some(tuples) = self.next_tuples(self.chunk).await? else {
                return Ok(None);
            };
            let count = tuples.len();
            match self.filled(tuples).await {
                Ok(filled) => break filled,
                Err(Error::TooLarge(_)) if count > 1 => {
                    self.chunk = count / 2;
                    self.after = before;
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
    async fn filled(&self, tuples: Vec<Vec<Place>>) -> Result<(Vec<Branch>, Shown), Error> {
        let (store, top) = (&*self.store, &self.plan.top);
        let mut left = Left {
            rows: self.max_rows,
            of: self.max_rows,
        };
        left.take(tuples.len())?;
        let branches = fill(store, top, self.to, tuples, &mut left).await?;
        let shown = Shown::load(store, top, &branches, self.max_rows).await?;
        Ok((branches, shown))
    }

    async fn next_tuples(&mut self, limit: usize) -> Result<Option<Vec<Vec<Place>>>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let slice = Slice {
            query: self.plan.top.query.clone(),
            given: self.given.iter().map(|(position, _)| *position).collect(),
            from: 0,
            to: self.to,
            newest: 0,
            after: self.after.take(),
            limit,
        };
        let rows = self.store.slice(slice).await?;
        self.is_done = rows.len() < limit;
        self.after = rows.last().map(|row| row.at.clone());
        if rows.is_empty() {
            return Ok(None);
        }
        let tuple = |outputs: Vec<Place>| self.given.iter().cloned().chain(outputs).collect();
        Ok(Some(
            rows.into_iter().map(|row| tuple(row.outputs)).collect(),
        ))
    }
}

/// Rows that may still be read.
struct Left {
    rows: usize,
    of: usize,
}

impl Left {
    fn take(&mut self, rows: usize) -> Result<(), Error> {
        let left = self.rows.checked_sub(rows);
        self.rows = left.ok_or(Error::TooLarge(self.of))?;
        Ok(())
    }
}

/// All tuples of a specification's matches.
pub async fn tuples(
    store: &Arc<dyn Store>,
    specification: &Specification,
    given: &[Reference],
) -> Result<Vec<Vec<Reference>>, Error> {
    let plan = Arc::new(Plan::of_matches(specification)?);
    let mut reading = Reading::start(store.clone(), plan, given.to_vec()).await?;
    let mut all = Vec::new();
    while let Some(tuples) = reading.next_tuples(PAGE).await? {
        if all.len() + tuples.len() > MAX_TUPLES {
            return Err(Error::TooMany(MAX_TUPLES));
        }
        let outputs = |tuple: Vec<Place>| {
            let outputs = tuple.into_iter().skip(given.len());
            outputs.map(|(_, reference)| reference).collect()
        };
        all.extend(tuples.into_iter().map(outputs));
    }
    Ok(all)
}

/// Finds the collections of many tuples, level by level: a question per collection, not per tuple.
fn fill<'a>(
    store: &'a dyn Store,
    level: &'a Level,
    to: Position,
    tuples: Vec<Vec<Place>>,
    left: &'a mut Left,
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
            let Part::Collection(inner) = part else {
                continue;
            };
            let (owners, tuples) = gather(store, inner, to, &branches, left).await?;
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

async fn gather(
    store: &dyn Store,
    level: &Level,
    to: Position,
    parents: &[Branch],
    left: &mut Left,
) -> Result<(Vec<usize>, Vec<Vec<Place>>), Error> {
    let positions =
        |branch: &Branch| -> Vec<Position> { branch.tuple.iter().map(|(at, _)| *at).collect() };
    let givens: Arc<[Vec<Position>]> = parents.iter().map(positions).collect();
    let (mut owners, mut tuples) = (Vec::new(), Vec::new());
    let mut after = None;
    loop {
        let gather = Gather {
            query: level.query.clone(),
            givens: givens.clone(),
            to,
            after: after.take(),
            limit: PAGE,
        };
        let found = store.gather(gather).await?;
        left.take(found.len())?;
        let is_done = found.len() < PAGE;
        after = found.last().map(|last| (last.of, last.row.at.clone()));
        for each in found {
            let mut tuple = parents[each.of].tuple.clone();
            tuple.extend(each.row.outputs);
            owners.push(each.of);
            tuples.push(tuple);
        }
        if is_done {
            return Ok((owners, tuples));
        }
    }
}
