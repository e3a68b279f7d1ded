//! The statements that find tuples.

use super::{Dialect, Loop, NothingStored, Statement, StatementBuilder, conditions::ConditionSql};
use crate::{
    query::{Query, Walk},
    store::{RowCursor, ScanDirection, Seq, names::IdsByName, sql_limit},
};

/// In which order the variables of a tuple are found, and between which seqs they are.
#[derive(Debug)]
pub(in crate::store) struct TupleSearch<'a> {
    pub(in crate::store) query: &'a Query,
    pub(in crate::store) direction: ScanDirection,
    pub(in crate::store) walk: Walk,
    /// After the first and up to the second, by variable.
    bounds: Vec<(Option<Seq>, Option<Seq>)>,
}

/// Where the last rows ended: the walk's first variables stay, the next one goes on.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct CursorLevel<'a> {
    at: &'a [Seq],
}

impl<'a> CursorLevel<'a> {
    /// Deepest first, so that the rows of all levels come in order. Without a cursor there is one
    /// level, which bounds nothing.
    pub(in crate::store) fn of(cursor: Option<&'a RowCursor>) -> Vec<Option<Self>> {
        let Some(RowCursor { at, .. }) = cursor else {
            return vec![None];
        };
        let lengths = (1..=at.len()).rev();
        let level = |length| Self { at: &at[..length] };
        lengths.map(|length| Some(level(length))).collect()
    }
}

impl<'a> TupleSearch<'a> {
    pub(in crate::store) fn new(
        query: &'a Query,
        first_new_output: usize,
        from: Seq,
        to: Seq,
        direction: ScanDirection,
    ) -> Self {
        let mut bounds = vec![(None, None); query.variables.len()];
        for (number, &variable) in query.outputs.iter().enumerate() {
            let (low, high): &mut (Option<Seq>, Option<Seq>) = &mut bounds[variable];
            let up_to = if number < first_new_output { from } else { to };
            *high = Some(high.map_or(up_to, |high| high.min(up_to)));
            if number == first_new_output && from > 0 {
                *low = Some(from);
            }
        }
        let start = start(query, first_new_output, from);
        let walk = match start.filter(|_| direction == ScanDirection::FromNew) {
            Some(start) => query.bottom_up(start),
            None => query.top_down(),
        };
        Self {
            query,
            direction,
            walk,
            bounds,
        }
    }

    /// Whether givens that are outputs themselves are within the bounds.
    pub(in crate::store) fn allows(&self, given: &[Seq]) -> bool {
        given.iter().zip(&self.bounds).all(|(at, (low, high))| {
            low.is_none_or(|low| *at > low) && high.is_none_or(|high| *at <= high)
        })
    }

    /// The tuples from one list of givens on.
    pub(in crate::store) fn tuples_from(
        &self,
        dialect: Dialect,
        ids: &IdsByName,
        given: &[Seq],
        level: Option<CursorLevel<'_>>,
        limit: usize,
    ) -> Result<Statement, NothingStored> {
        let mut sql = StatementBuilder::new(dialect, ids, &self.query.variables);
        sql.givens(given);
        self.render(sql, None, level, limit)
    }

    /// The tuples from many lists of givens on, in the order of the lists.
    pub(in crate::store) fn tuples_from_each(
        &self,
        dialect: Dialect,
        ids: &IdsByName,
        givens: &[Vec<Seq>],
        limit: usize,
    ) -> Result<Statement, NothingStored> {
        let mut sql = StatementBuilder::new(dialect, ids, &self.query.variables);
        let table = sql.givens_table(self.query.givens, givens);
        self.render(sql, Some(&table), None, limit)
    }

    fn render(
        &self,
        mut sql: StatementBuilder<'_>,
        givens: Option<&str>,
        level: Option<CursorLevel<'_>>,
        limit: usize,
    ) -> Result<Statement, NothingStored> {
        let (mut loops, mut first) = sql.loops(&self.walk, &self.query.edges)?;
        for (number, each) in loops.iter_mut().enumerate() {
            self.bound(&mut sql, each, number, level);
        }
        self.add_conditions(&mut sql, &mut loops, &mut first)?;
        let given = if givens.is_some() { "g.n" } else { "0" };
        let mut seqs = vec![given.to_owned()];
        seqs.extend(self.walk.steps.iter().map(|step| sql.term(step.variable)));
        let facts = sql.fact_table();
        let hash = |output: &usize| {
            let term = sql.term(*output);
            format!("(SELECT o.hash FROM {facts} o WHERE o.seq = {term})")
        };
        let hashes: Vec<String> = self.query.outputs.iter().map(hash).collect();
        let limit = sql.number(sql_limit(limit));
        let columns = sql.columns(&seqs, &hashes);
        let from = sql.join_loops(givens, &loops, None, first);
        Ok(sql.finish(format!("SELECT {columns}{from} LIMIT {limit}")))
    }

    pub(super) fn bound(
        &self,
        sql: &mut StatementBuilder<'_>,
        each: &mut Loop,
        number: usize,
        level: Option<CursorLevel<'_>>,
    ) {
        let (mut low, high) = self.bounds[self.walk.steps[number].variable];
        let term = format!("{}.{}", each.alias, each.column);
        if let Some(CursorLevel { at }) = level
            && let Some(seq) = at.get(number)
        {
            if number + 1 < at.len() {
                let seq = sql.number(*seq);
                each.conditions.push(format!("{term} = {seq}"));
            } else {
                low = Some(low.map_or(*seq, |low| low.max(*seq)));
            }
        }
        for (bound, comparison) in [(low, ">"), (high, "<=")] {
            if let Some(bound) = bound {
                let bound = sql.number(bound);
                each.conditions.push(format!("{term} {comparison} {bound}"));
            }
        }
    }

    /// Each condition goes to the first loop in which its variables are known, so that the loops
    /// below it are not entered for what it rejects.
    fn add_conditions(
        &self,
        sql: &mut StatementBuilder<'_>,
        loops: &mut [Loop],
        first: &mut Vec<String>,
    ) -> Result<(), NothingStored> {
        let query = self.query;
        let mut add = |variables: &[usize], condition: String| {
            let last = self
                .walk
                .steps
                .iter()
                .rposition(|step| variables.contains(&step.variable));
            match last {
                Some(last) => loops[last].conditions.push(condition),
                None => first.push(condition),
            }
        };
        for (one, other) in &query.equals {
            let condition = format!("{} = {}", sql.term(*one), sql.term(*other));
            add(&[*one, *other], condition);
        }
        for condition in &query.conditions {
            let base = query.variables.len();
            match sql.exists(condition, base) {
                ConditionSql::Always => {}
                ConditionSql::Never => return Err(NothingStored),
                ConditionSql::Sql(text) => add(&condition.outer(base), text),
            }
        }
        for group in query.hidden() {
            let mut around = group.clone();
            for edge in &query.edges {
                if group.iter().any(|hidden| edge.touches(*hidden)) {
                    around.extend([edge.successor, edge.predecessor]);
                }
            }
            let condition = sql.is_first_path(query, &group)?;
            add(&around, condition);
        }
        Ok(())
    }
}

/// The variable of the new facts, if tuples can be searched from them: from the beginning on
/// everything is new, and the first step from the given leads to them by itself.
pub(super) fn start(query: &Query, first_new_output: usize, from: Seq) -> Option<usize> {
    let start = *query.outputs.get(first_new_output)?;
    let first = query.top_down().steps.first()?.variable;
    (from > 0 && start >= query.givens && start != first).then_some(start)
}
