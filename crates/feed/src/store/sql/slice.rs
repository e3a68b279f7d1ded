//! The statements of a slice.

use super::{Asked, Dialect, Loop, Nothing, Table, Text, all, conditions::Told};
use crate::{
    query::{Query, Walk},
    store::{Cursor, Position, Way, names::Ids},
};

/// How the variables of a slice are found, and between which positions they are.
#[derive(Debug)]
pub(in crate::store) struct Walking<'a> {
    pub(in crate::store) query: &'a Query,
    pub(in crate::store) way: Way,
    pub(in crate::store) walk: Walk,
    /// After the first and up to the second, by variable.
    bounds: Vec<(Option<Position>, Option<Position>)>,
}

/// Where the last rows ended: the walk's first variables stay, the next one goes on.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct Level<'a> {
    pub(in crate::store) after: &'a [Position],
}

impl<'a> Level<'a> {
    /// Deepest first, so that the rows of all come in order. Without a cursor there is one that
    /// bounds nothing.
    pub(in crate::store) fn of(after: Option<&'a Cursor>) -> Vec<Option<Self>> {
        match after {
            None => vec![None],
            Some(Cursor { at, .. }) => (1..=at.len())
                .rev()
                .map(|length| {
                    Some(Self {
                        after: &at[..length],
                    })
                })
                .collect(),
        }
    }
}

impl<'a> Walking<'a> {
    pub(in crate::store) fn new(
        query: &'a Query,
        newest: usize,
        from: Position,
        to: Position,
        way: Way,
    ) -> Self {
        let mut bounds = vec![(None, None); query.variables.len()];
        for (number, &variable) in query.outputs.iter().enumerate() {
            let (low, high): &mut (Option<Position>, Option<Position>) = &mut bounds[variable];
            let up_to = if number < newest { from } else { to };
            *high = Some(high.map_or(up_to, |high| high.min(up_to)));
            if number == newest && from > 0 {
                *low = Some(from);
            }
        }
        let walk = match start(query, newest, from).filter(|_| way == Way::FromNew) {
            Some(start) => query.bottom_up(start),
            None => query.top_down(),
        };
        Self {
            query,
            way,
            walk,
            bounds,
        }
    }

    /// Whether givens that are outputs themselves are where they must be.
    pub(in crate::store) fn allows(&self, given: &[Position]) -> bool {
        given.iter().zip(&self.bounds).all(|(at, (low, high))| {
            low.is_none_or(|low| *at > low) && high.is_none_or(|high| *at <= high)
        })
    }

    /// From one given tuple.
    pub(in crate::store) fn one(
        &self,
        dialect: Dialect,
        ids: &Ids,
        given: &[Position],
        level: Option<Level<'_>>,
        limit: usize,
    ) -> Result<Asked, Nothing> {
        let mut text = Text::new(dialect, ids, &self.query.variables);
        text.given(given);
        self.render(text, None, level, limit)
    }

    /// From many, in their order.
    pub(in crate::store) fn many(
        &self,
        dialect: Dialect,
        ids: &Ids,
        givens: Table,
        limit: usize,
    ) -> Result<Asked, Nothing> {
        let mut text = Text::new(dialect, ids, &self.query.variables);
        for variable in 0..self.query.givens {
            text.terms.insert(variable, format!("g.g{variable}"));
        }
        let table = text.table(givens);
        self.render(text, Some(format!("({table}) g")), None, limit)
    }

    fn render(
        &self,
        mut text: Text<'_>,
        givens: Option<String>,
        level: Option<Level<'_>>,
        limit: usize,
    ) -> Result<Asked, Nothing> {
        let (mut loops, mut first) = text.loops(&self.walk, &self.query.edges)?;
        for (number, each) in loops.iter_mut().enumerate() {
            self.bound(&mut text, each, number, level);
        }
        self.place_conditions(&mut text, &mut loops, &mut first)?;
        let count = if givens.is_some() { "g.n" } else { "0" };
        let mut at = vec![count.to_owned()];
        at.extend(self.walk.steps.iter().map(|step| text.term(step.variable)));
        let facts = text.fact_table();
        let hashes: Vec<String> = self
            .query
            .outputs
            .iter()
            .map(|output| {
                let term = text.term(*output);
                format!("(SELECT o.hash FROM {facts} o WHERE o.position = {term})")
            })
            .collect();
        let limit = text.number(i64::try_from(limit).unwrap_or(i64::MAX));
        let sql = match text.dialect {
            Dialect::Sqlite => {
                let columns = at.into_iter().chain(hashes).collect::<Vec<_>>().join(", ");
                let mut from: Vec<String> = givens.into_iter().collect();
                if !loops.is_empty() {
                    from.push(text.nested(&loops));
                }
                let from = match &*from {
                    [] => String::new(),
                    some => format!(" FROM {}", some.join(" CROSS JOIN ")),
                };
                first.extend(loops.into_iter().flat_map(|each| each.conditions));
                format!("SELECT {columns}{from} WHERE {} LIMIT {limit}", all(&first))
            }
            Dialect::Postgres => {
                let columns = format!(
                    "ARRAY[{}]::bigint[], ARRAY[{}]::bytea[]",
                    at.join(", "),
                    hashes.join(", ")
                );
                let mut from: Vec<String> = givens.into_iter().collect();
                from.extend(loops.iter().map(lateral));
                let from = match &*from {
                    [] => String::new(),
                    some => format!(" FROM {}", some.join(" CROSS JOIN LATERAL ")),
                };
                format!("SELECT {columns}{from} WHERE {} LIMIT {limit}", all(&first))
            }
        };
        Ok(text.asked(sql))
    }

    pub(super) fn bound(
        &self,
        text: &mut Text<'_>,
        each: &mut Loop,
        number: usize,
        level: Option<Level<'_>>,
    ) {
        let (mut low, high) = self.bounds[self.walk.steps[number].variable];
        let term = format!("{}.{}", each.alias, each.column);
        if let Some(Level { after }) = level
            && let Some(place) = after.get(number)
        {
            if number + 1 < after.len() {
                let place = text.number(*place);
                each.conditions.push(format!("{term} = {place}"));
            } else {
                low = Some(low.map_or(*place, |low| low.max(*place)));
            }
        }
        if let Some(low) = low {
            let low = text.number(low);
            each.conditions.push(format!("{term} > {low}"));
        }
        if let Some(high) = high {
            let high = text.number(high);
            each.conditions.push(format!("{term} <= {high}"));
        }
    }

    /// Each as soon as what it speaks of is known, so that what it rejects is not gone into.
    fn place_conditions(
        &self,
        text: &mut Text<'_>,
        loops: &mut [Loop],
        first: &mut Vec<String>,
    ) -> Result<(), Nothing> {
        let query = self.query;
        let mut place = |variables: &[usize], condition: String| {
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
            let condition = format!("{} = {}", text.term(*one), text.term(*other));
            place(&[*one, *other], condition);
        }
        for condition in &query.conditions {
            let base = query.variables.len();
            match text.exists(condition, base) {
                Told::Always => {}
                Told::Never => return Err(Nothing),
                Told::Asked(asked) => place(&condition.outer(base), asked),
            }
        }
        for group in query.hidden() {
            let mut around = group.clone();
            for edge in &query.edges {
                if group.iter().any(|hidden| edge.touches(*hidden)) {
                    around.extend([edge.successor, edge.predecessor]);
                }
            }
            let condition = text.is_first_way(query, &group)?;
            place(&around, condition);
        }
        Ok(())
    }
}

/// The variable of a slice's new facts, if they can be looked for from them: from the beginning on
/// everything is new, and the first step from the given leads to them by itself.
pub(super) fn start(query: &Query, newest: usize, from: Position) -> Option<usize> {
    let start = *query.outputs.get(newest)?;
    let first = query.top_down().steps.first()?.variable;
    (from > 0 && start >= query.givens && start != first).then_some(start)
}

/// Ordered inside, so that it is not merged into what is outside and the loops stay as written.
pub(super) fn lateral(each: &Loop) -> String {
    let Loop {
        alias,
        table,
        column,
        conditions,
    } = each;
    format!(
        "(SELECT {alias}.{column} FROM {table} {alias} WHERE {} ORDER BY {alias}.{column}) {alias}",
        all(conditions)
    )
}
