//! In which direction tuples are searched: from the end that has fewer facts. The facts at both
//! ends are counted no further than needed to know which has fewer.

use super::{Dialect, NothingStored, Statement, StatementBuilder, TupleSearch, tuples};
use crate::{
    query::{FoundBy, Walk, WalkStep},
    store::{DeltaQuery, ScanDirection, Seq, names::IdsByName},
};

/// In spans of at most so many seqs there are few new facts, so they are not counted.
const SHORT_SPAN: Seq = 1_000;
/// How far the facts are counted first. As long as both ends have more, the count grows by
/// [`GROWTH`], so counting costs no more than a few times what the better direction costs.
const FIRST_COUNT: i64 = 256;
const GROWTH: i64 = 4;
/// Steps of a walk whose facts are counted.
const MAX_STEPS: usize = 8;

#[derive(Debug)]
pub(in crate::store) struct DirectionChoice {
    chosen: Option<ScanDirection>,
    count: i64,
}

impl DirectionChoice {
    pub(in crate::store) fn of(delta: &DeltaQuery) -> Self {
        let chosen = match tuples::start(&delta.query, delta.first_new_output, delta.from) {
            None => Some(ScanDirection::FromGiven),
            Some(start) => {
                let up = delta.query.bottom_up(start);
                let mut up = up.steps.iter().skip(1);
                let is_upward = up.all(|step| matches!(step.by, FoundBy::Up { .. }));
                let is_short = delta.to.saturating_sub(delta.from) <= SHORT_SPAN;
                (is_short && is_upward).then_some(ScanDirection::FromNew)
            }
        };
        Self {
            chosen,
            count: FIRST_COUNT,
        }
    }

    /// The direction, or the statement to run before it is known.
    pub(in crate::store) fn next(
        &self,
        dialect: Dialect,
        ids: &IdsByName,
        delta: &DeltaQuery,
    ) -> Result<ScanDirection, Statement> {
        if let Some(chosen) = self.chosen {
            return Ok(chosen);
        }
        // If a type or role is not stored, neither direction finds anything.
        let statement = self.statement(dialect, ids, delta);
        statement.map_or(Ok(ScanDirection::FromGiven), Err)
    }

    /// Takes the statement's answer: which end has no more facts than were counted.
    pub(in crate::store) fn answer(&mut self, shorter: i64) {
        match shorter {
            0 => self.chosen = Some(ScanDirection::FromNew),
            1 => self.chosen = Some(ScanDirection::FromGiven),
            _ => self.count = self.count.saturating_mul(GROWTH),
        }
    }

    fn statement(
        &self,
        dialect: Dialect,
        ids: &IdsByName,
        delta: &DeltaQuery,
    ) -> Result<Statement, NothingStored> {
        let mut sql = StatementBuilder::new(dialect, ids, &delta.query.variables);
        sql.givens(&delta.given);
        let count = sql.number(self.count);
        let mut has_more = |direction: ScanDirection| -> Result<String, NothingStored> {
            let (query, output) = (&delta.query, delta.first_new_output);
            let mut search = TupleSearch::new(query, output, delta.from, delta.to, direction);
            let steps = counted_steps(&search, delta).min(MAX_STEPS);
            search.walk = without_checks(&search.walk, steps);
            let (mut loops, _) = sql.loops(&search.walk, &query.edges)?;
            for (number, each) in loops.iter_mut().enumerate() {
                search.bound(&mut sql, each, number, None);
            }
            // A step is counted only if the steps before it have no more than the count: else there
            // might be no end of facts that lead nowhere.
            let cases: Vec<String> = (1..=loops.len())
                .map(|steps| {
                    let from = sql.join_loops(None, &loops[..steps], None, Vec::new());
                    format!("WHEN (SELECT 1{from} LIMIT 1 OFFSET {count}) IS NOT NULL THEN 1")
                })
                .collect();
            Ok(format!("CASE {} ELSE 0 END", cases.join(" ")))
        };
        let new = has_more(ScanDirection::FromNew)?;
        let given = has_more(ScanDirection::FromGiven)?;
        let shorter = format!("CASE WHEN {new} = 0 THEN 0 WHEN {given} = 0 THEN 1 ELSE 2 END");
        let columns = sql.columns(&[shorter], &[]);
        Ok(sql.finish(format!("SELECT {columns}")))
    }
}

/// Steps before those that every tuple has to be found by in both directions.
fn counted_steps(search: &TupleSearch<'_>, delta: &DeltaQuery) -> usize {
    let (steps, query) = (&search.walk.steps, &delta.query);
    let before = match search.direction {
        ScanDirection::FromGiven => {
            let new = query.outputs[delta.first_new_output];
            let before = steps.iter().position(|step| step.variable == new);
            before.unwrap_or(steps.len())
        }
        // Up to the step after which it is known of which given a new fact is.
        ScanDirection::FromNew => {
            let is_given = |edge: &usize| {
                let edge = &query.edges[*edge];
                edge.successor.min(edge.predecessor) < query.givens
            };
            let last = steps.iter().rposition(|step| {
                let by = match &step.by {
                    FoundBy::Down { edge } | FoundBy::Up { edge } => Some(edge),
                    FoundBy::Type => None,
                };
                by.into_iter().chain(&step.edges).any(is_given)
            });
            last.map_or(steps.len(), |last| last + 1)
        }
    };
    // A step up does not lead to many facts.
    let many = |step: &WalkStep| !matches!(step.by, FoundBy::Up { .. });
    let last = steps[..before].iter().rposition(many);
    last.map_or(before.min(1), |last| last + 1)
}

/// Facts that a check rejects are read too, so they are counted.
fn without_checks(walk: &Walk, steps: usize) -> Walk {
    let mut steps = walk.steps[..steps].to_vec();
    for step in &mut steps {
        step.edges.clear();
    }
    Walk {
        first: Vec::new(),
        steps,
    }
}
