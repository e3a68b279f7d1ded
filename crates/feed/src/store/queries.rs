//! Queries on both databases: which statements run one after the other, and what their rows mean.

#[cfg(test)]
mod tests;
#[cfg(test)]
wakeline_testkit::conformance! {
    crate::test_database::Database;
    tests:
        a_page_of_one_level_costs_the_page,
        a_page_of_two_levels_costs_the_page,
        a_page_inside_a_crowded_parent_costs_the_page,
        new_facts_below_many_old_ones_cost_the_new_ones,
        new_facts_below_many_old_ones_and_after_many_others_cost_the_new_ones,
        new_facts_below_few_old_ones_and_after_many_of_their_type_cost_the_new_ones;
}

use wakeline_store::Error;

use super::{
    Concern, ConcernQuery, DeltaQuery, GivenTuple, RowCursor, ScanDirection, Seq, TupleRow,
    TuplesQuery,
    names::IdsByName,
    sql::{
        self, ConcernSearch, CursorLevel, Dialect, DirectionChoice, NothingStored, Statement,
        TupleSearch,
    },
};
use crate::{
    fact::{Hash, Reference},
    query::Query,
};

/// Runs statements on one of the databases.
pub(super) trait RunStatement {
    const DIALECT: Dialect;

    async fn rows(&self, kind: &'static str, statement: &Statement) -> Result<Vec<RawRow>, Error>;
}

/// A row as the databases return it.
pub(super) struct RawRow {
    pub(super) seqs: Vec<i64>,
    pub(super) hashes: Vec<Option<Vec<u8>>>,
}

pub(super) async fn delta_page<R: RunStatement>(
    database: &R,
    ids: &IdsByName,
    delta: &DeltaQuery,
) -> Result<Vec<TupleRow>, Error> {
    let direction = match &delta.cursor {
        Some(cursor) => cursor.direction,
        None => direction(database, ids, delta).await?,
    };
    let (query, output) = (&delta.query, delta.first_new_output);
    let search = TupleSearch::new(query, output, delta.from, delta.to, direction);
    if !search.allows(&delta.given) {
        return Ok(Vec::new());
    }
    let mut page = TuplePage {
        database,
        ids,
        search,
        kind: "feed_delta_page",
        limit: delta.limit,
        found: Vec::new(),
    };
    page.add_from_given(&delta.given, 0, delta.cursor.as_ref())
        .await?;
    Ok(page.finish()?.into_iter().map(|each| each.row).collect())
}

async fn direction<R: RunStatement>(
    database: &R,
    ids: &IdsByName,
    delta: &DeltaQuery,
) -> Result<ScanDirection, Error> {
    let mut choice = DirectionChoice::of(delta);
    loop {
        let statement = match choice.next(R::DIALECT, ids, delta) {
            Ok(direction) => return Ok(direction),
            Err(statement) => statement,
        };
        let rows = database.rows("feed_direction", &statement).await?;
        let shorter = rows.first().and_then(|row| row.seqs.first());
        choice.answer(*shorter.ok_or_else(unreadable)?);
    }
}

pub(super) async fn tuples_of<R: RunStatement>(
    database: &R,
    ids: &IdsByName,
    query: &TuplesQuery,
) -> Result<Vec<GivenTuple>, Error> {
    let mut page = TuplePage {
        database,
        ids,
        search: TupleSearch::new(&query.query, 0, 0, query.to, ScanDirection::FromGiven),
        kind: "feed_tuples",
        limit: query.limit,
        found: Vec::new(),
    };
    let mut next = 0;
    if let Some((given, cursor)) = &query.cursor {
        next = given + 1;
        page.add_from_given(&query.givens[*given], *given, Some(cursor))
            .await?;
    }
    let rest = query.givens.get(next..).unwrap_or_default();
    if !page.is_full() && !rest.is_empty() {
        let search = &page.search;
        let statement = search.tuples_from_each(R::DIALECT, ids, rest, page.left());
        page.add(statement, rest, next).await?;
    }
    page.finish()
}

/// Tuples as they are found.
struct TuplePage<'a, R> {
    database: &'a R,
    ids: &'a IdsByName,
    search: TupleSearch<'a>,
    /// Of the statement, for the metrics.
    kind: &'static str,
    limit: usize,
    found: Vec<GivenTuple>,
}

impl<R: RunStatement> TuplePage<'_, R> {
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.found.len())
    }

    fn is_full(&self) -> bool {
        self.left() == 0
    }

    /// `index`: which of the query's givens this is.
    async fn add_from_given(
        &mut self,
        given: &Vec<Seq>,
        index: usize,
        cursor: Option<&RowCursor>,
    ) -> Result<(), Error> {
        for level in CursorLevel::of(cursor) {
            let search = &self.search;
            let statement = search.tuples_from(R::DIALECT, self.ids, given, level, self.left());
            self.add(statement, std::slice::from_ref(given), index)
                .await?;
            if self.is_full() {
                break;
            }
        }
        Ok(())
    }

    /// `first`: which of the query's givens the first of these is.
    async fn add(
        &mut self,
        statement: Result<Statement, NothingStored>,
        givens: &[Vec<Seq>],
        first: usize,
    ) -> Result<(), Error> {
        let Ok(statement) = statement else {
            return Ok(());
        };
        for row in self.database.rows(self.kind, &statement).await? {
            let tuple = read_tuple(&self.search, row, givens, first);
            self.found.push(tuple.ok_or_else(unreadable)?);
        }
        Ok(())
    }

    /// The rows must ascend: the next page is searched after the last one.
    fn finish(self) -> Result<Vec<GivenTuple>, Error> {
        let key = |tuple: &GivenTuple| (tuple.given, tuple.row.at.clone());
        if self.found.is_sorted_by(|one, next| key(one) < key(next)) {
            Ok(self.found)
        } else {
            Err(Error::Failed("the rows of a feed are out of order".into()))
        }
    }
}

fn unreadable() -> Error {
    Error::Failed("a row of a feed cannot be read".into())
}

/// A row has the index of its given, the variables of the walk, and the hashes of the outputs.
fn read_tuple(
    search: &TupleSearch<'_>,
    row: RawRow,
    givens: &[Vec<Seq>],
    first: usize,
) -> Option<GivenTuple> {
    let (index, at) = row.seqs.split_first()?;
    let index = usize::try_from(*index).ok()?;
    let given = givens.get(index)?;
    let query = search.query;
    let output = |(&variable, hash): (&usize, Option<Vec<u8>>)| {
        let mut steps = search.walk.steps.iter();
        let seq = given.get(variable).or_else(|| {
            let step = steps.position(|step| step.variable == variable)?;
            at.get(step)
        })?;
        let reference = Reference {
            kind: query.variables[variable].clone(),
            hash: Hash(hash?.try_into().ok()?),
        };
        Some((*seq, reference))
    };
    let outputs = query.outputs.iter().zip(row.hashes).map(output);
    Some(GivenTuple {
        given: first + index,
        row: TupleRow {
            outputs: outputs.collect::<Option<_>>()?,
            at: RowCursor {
                direction: search.direction,
                at: at.to_vec(),
            },
        },
    })
}

pub(super) async fn concerns<R: RunStatement>(
    database: &R,
    ids: &IdsByName,
    query: &ConcernQuery,
) -> Result<Vec<Concern>, Error> {
    let search = ConcernSearch::new(&query.query, query.variable);
    let statement = search.statement(R::DIALECT, ids, &query.facts, &query.watched);
    let Some(statement) = statement else {
        return Ok(Vec::new());
    };
    let rows = database.rows("feed_concerns", &statement).await?;
    let concern = |row: RawRow| search.read(&row.seqs, &query.watched);
    Ok(rows.into_iter().filter_map(concern).collect())
}

pub(super) async fn matches<R: RunStatement>(
    database: &R,
    ids: &IdsByName,
    query: &Query,
    givens: &[Vec<Seq>],
) -> Result<Vec<bool>, Error> {
    if givens.is_empty() {
        return Ok(Vec::new());
    }
    let statement = match sql::matching_givens(R::DIALECT, ids, query, givens) {
        Ok(statement) => statement,
        Err(answer) => return Ok(vec![answer; givens.len()]),
    };
    let mut matches = vec![false; givens.len()];
    for row in database.rows("feed_matches", &statement).await? {
        let index = row.seqs.first().copied().map(usize::try_from);
        let Some(Ok(index)) = index else { continue };
        if let Some(matched) = matches.get_mut(index) {
            *matched = true;
        }
    }
    Ok(matches)
}
