//! From which end a slice is looked for: over the fewer facts, which are counted no further than it
//! takes to know.

use super::{Asked, Dialect, Nothing, Text, Walking, slice};
use crate::{
    query::{By, Step, Walk},
    store::{Position, Slice, Way, names::Ids},
};

/// In spans of at most so many positions the new facts are few, whatever they are: not counted.
const SHORT_SPAN: Position = 1_000;
/// Counted up to here first, and then so many times further as long as both ends have more: so
/// counting costs no more than a few times what the better way does.
const FIRST_COUNT: i64 = 256;
const GROWTH: i64 = 4;
/// Steps of a walk that are counted.
const MAX_STEPS: usize = 8;

#[derive(Debug)]
pub(in crate::store) struct Ways {
    known: Option<Way>,
    count: i64,
}

impl Ways {
    pub(in crate::store) fn of(slice: &Slice) -> Self {
        let known = match slice::start(&slice.query, slice.newest, slice.from) {
            None => Some(Way::FromGiven),
            Some(start) => {
                let up = slice.query.bottom_up(start);
                let mut up = up.steps.iter().skip(1);
                let is_upward = up.all(|step| matches!(step.by, By::Up { .. }));
                let is_short = slice.to.saturating_sub(slice.from) <= SHORT_SPAN;
                (is_short && is_upward).then_some(Way::FromNew)
            }
        };
        Self {
            known,
            count: FIRST_COUNT,
        }
    }

    /// The way, or what is to be asked first.
    pub(in crate::store) fn next(
        &self,
        dialect: Dialect,
        ids: &Ids,
        slice: &Slice,
    ) -> Result<Way, Asked> {
        if let Some(known) = self.known {
            return Ok(known);
        }
        // Where a type or role is not stored there is nothing to find, either way.
        let asked = self.question(dialect, ids, slice);
        asked.map_or(Ok(Way::FromGiven), Err)
    }

    /// The first of the ends that has no more than was asked for.
    pub(in crate::store) fn answer(&mut self, shorter: i64) {
        match shorter {
            0 => self.known = Some(Way::FromNew),
            1 => self.known = Some(Way::FromGiven),
            _ => self.count = self.count.saturating_mul(GROWTH),
        }
    }

    fn question(&self, dialect: Dialect, ids: &Ids, slice: &Slice) -> Result<Asked, Nothing> {
        let mut text = Text::new(dialect, ids, &slice.query.variables);
        text.given(&slice.given);
        let count = text.number(self.count);
        let mut is_more = |way: Way| -> Result<String, Nothing> {
            let mut walking = Walking::new(&slice.query, slice.newest, slice.from, slice.to, way);
            let steps = counted(&walking, slice).min(MAX_STEPS);
            walking.walk = without_checks(&walking.walk, steps);
            let (mut loops, _) = text.loops(&walking.walk, &slice.query.edges)?;
            for (number, each) in loops.iter_mut().enumerate() {
                walking.bound(&mut text, each, number, None);
            }
            // One step further is counted only where there is no more before: else there might be no
            // end of facts that lead nowhere.
            let cases: Vec<String> = (1..=loops.len())
                .map(|steps| {
                    let (from, matched) = text.select(&loops[..steps]);
                    format!(
                        "WHEN (SELECT 1 FROM {from} WHERE {matched} LIMIT 1 OFFSET {count}) \
                         IS NOT NULL THEN 1"
                    )
                })
                .collect();
            Ok(format!("CASE {} ELSE 0 END", cases.join(" ")))
        };
        let (new, given) = (is_more(Way::FromNew)?, is_more(Way::FromGiven)?);
        let shorter = format!("CASE WHEN {new} = 0 THEN 0 WHEN {given} = 0 THEN 1 ELSE 2 END");
        let sql = match dialect {
            Dialect::Sqlite => format!("SELECT {shorter}"),
            Dialect::Postgres => format!("SELECT ARRAY[{shorter}]::bigint[], ARRAY[]::bytea[]"),
        };
        Ok(text.asked(sql))
    }
}

/// Steps before those that every tuple of the slice has to be found by, whichever the way.
fn counted(walking: &Walking<'_>, slice: &Slice) -> usize {
    let (steps, query) = (&walking.walk.steps, &slice.query);
    let before = match walking.way {
        Way::FromGiven => {
            let new = query.outputs[slice.newest];
            let before = steps.iter().position(|step| step.variable == new);
            before.unwrap_or(steps.len())
        }
        // Up to where it is known of which given a new fact is.
        Way::FromNew => {
            let is_given = |edge: &usize| {
                let edge = &query.edges[*edge];
                edge.successor.min(edge.predecessor) < query.givens
            };
            let last = steps.iter().rposition(|step| {
                let by = match &step.by {
                    By::Down { edge } | By::Up { edge } => Some(edge),
                    By::Type => None,
                };
                by.into_iter().chain(&step.edges).any(is_given)
            });
            last.map_or(steps.len(), |last| last + 1)
        }
    };
    // Going up does not lead to many.
    let many = |step: &Step| !matches!(step.by, By::Up { .. });
    let last = steps[..before].iter().rposition(many);
    last.map_or(before.min(1), |last| last + 1)
}

/// What a check rejects is looked at too.
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
