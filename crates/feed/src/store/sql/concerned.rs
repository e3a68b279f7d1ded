//! The statement for which givens new facts concern.

use super::{Asked, Dialect, Nothing, Table, Text, all, found, slice::lateral};
use crate::{
    query::Query,
    store::{Concern, MAX_CONCERNS, Position, names::Ids},
};

/// How the givens are found from a variable.
#[derive(Debug)]
pub(in crate::store) struct Concerns<'a> {
    query: &'a Query,
    variable: usize,
    /// Found by going to predecessors: variables on the way, and givens.
    above: Vec<usize>,
    above_givens: Vec<usize>,
    /// Between the fact and givens that are not above it.
    aside: Vec<usize>,
    /// All givens that the fact is connected with.
    givens: Vec<usize>,
}

impl<'a> Concerns<'a> {
    pub(in crate::store) fn new(query: &'a Query, variable: usize) -> Self {
        let (all_around, givens) = reach(query, variable, false);
        let (above, mut above_givens) = reach(query, variable, true);
        if variable < query.givens {
            above_givens.push(variable);
        }
        let is_above = givens.iter().all(|given| above_givens.contains(given));
        let around = if is_above { above.clone() } else { all_around };
        let around = trim(query, variable, around, &givens);
        let (above, aside) = around
            .into_iter()
            .partition(|variable| above.contains(variable));
        Self {
            query,
            variable,
            above,
            above_givens,
            aside,
            givens,
        }
    }

    /// Whether the givens can be found without knowing who waits with which.
    pub(in crate::store) fn is_pure(&self) -> bool {
        self.givens
            .iter()
            .all(|given| self.above_givens.contains(given))
    }

    pub(in crate::store) fn ask(
        &self,
        dialect: Dialect,
        ids: &Ids,
        facts: Vec<Position>,
        watched: &[Vec<Position>],
    ) -> Result<Asked, Nothing> {
        let mut text = Text::new(dialect, ids, &self.query.variables);
        let facts = text.table(Table {
            width: 1,
            values: facts,
        });
        text.terms.insert(self.variable, "f.g0".into());
        if watched.is_empty() {
            self.pure(text, &facts)
        } else {
            self.watched(text, &facts, watched)
        }
    }

    fn pure(&self, mut text: Text<'_>, facts: &str) -> Result<Asked, Nothing> {
        let mut wanted = self.above.clone();
        let others = self
            .above_givens
            .iter()
            .filter(|given| **given != self.variable);
        wanted.extend(others);
        let walk = self.query.from_known(&[self.variable], wanted);
        let (loops, first) = text.loops(&walk, &self.query.edges)?;
        let mut columns = vec!["f.g0".to_owned()];
        columns.extend(self.above_givens.iter().map(|given| text.term(*given)));
        let from = format!("({facts}) f");
        let sql = render(&text, &columns, &from, loops, first, None);
        Ok(text.asked(format!("{sql} LIMIT {MAX_CONCERNS}")))
    }

    fn watched(
        &self,
        mut text: Text<'_>,
        facts: &str,
        watched: &[Vec<Position>],
    ) -> Result<Asked, Nothing> {
        let walk = self.query.from_known(&[self.variable], self.above.clone());
        let (loops, mut first) = text.loops(&walk, &self.query.edges)?;
        let table = text.table(Table::of(self.query.givens, watched.iter()));
        let mut known = self.above.clone();
        known.push(self.variable);
        for &given in &self.givens {
            let term = format!("w.g{given}");
            if given == self.variable {
                first.push(format!("{} = {term}", text.term(given)));
                continue;
            }
            text.terms.insert(given, term);
            known.push(given);
        }
        let rest = self.query.from_known(&known, self.aside.clone());
        let (rest, checks) = text.loops(&rest, &self.query.edges)?;
        first.extend(checks);
        if !rest.is_empty() {
            let conditions: Vec<String> = rest
                .iter()
                .flat_map(|each| each.conditions.clone())
                .collect();
            first.push(found(&text.nested(&rest), &all(&conditions), true));
        }
        let columns = vec!["f.g0".to_owned(), "w.n".to_owned()];
        let from = format!("({facts}) f");
        let sql = render(&text, &columns, &from, loops, first, Some("w"));
        // Once, not for each fact.
        let sql = format!("WITH w AS MATERIALIZED ({table}) {sql}");
        Ok(text.asked(sql))
    }

    pub(in crate::store) fn read(&self, row: &[i64], watched: &[Vec<Position>]) -> Option<Concern> {
        let (&fact, found) = row.split_first()?;
        let mut given = vec![None; self.query.givens];
        if watched.is_empty() {
            for (place, position) in self.above_givens.iter().zip(found) {
                given[*place] = Some(*position);
            }
        } else {
            let number = usize::try_from(*found.first()?).ok()?;
            let with = watched.get(number)?;
            for &place in &self.givens {
                given[place] = with.get(place).copied();
            }
        }
        Some(Concern { fact, given })
    }
}

fn render(
    text: &Text<'_>,
    columns: &[String],
    from: &str,
    loops: Vec<super::Loop>,
    mut first: Vec<String>,
    last: Option<&str>,
) -> String {
    let mut tables = vec![from.to_owned()];
    let columns = columns.join(", ");
    // Without a comparison the same twice does no harm, and each once would need all to be found.
    let select = match last {
        Some(_) => "SELECT DISTINCT",
        None => "SELECT",
    };
    match text.dialect {
        Dialect::Sqlite => {
            tables.extend((!loops.is_empty()).then(|| text.nested(&loops)));
            tables.extend(last.map(str::to_owned));
            let from = tables.join(" CROSS JOIN ");
            first.extend(loops.into_iter().flat_map(|each| each.conditions));
            format!("{select} {columns} FROM {from} WHERE {}", all(&first))
        }
        Dialect::Postgres => {
            tables.extend(loops.iter().map(lateral));
            let mut from = tables.join(" CROSS JOIN LATERAL ");
            from.extend(last.map(|last| format!(" CROSS JOIN {last}")));
            format!(
                "{select} ARRAY[{columns}]::bigint[], ARRAY[]::bytea[] FROM {from} WHERE {}",
                all(&first)
            )
        }
    }
}

/// Variables and givens that a variable is connected with, not through a given.
fn reach(query: &Query, from: usize, is_upward: bool) -> (Vec<usize>, Vec<usize>) {
    let (mut variables, mut givens) = (vec![from], Vec::new());
    let mut next = 0;
    while let Some(&at) = variables.get(next) {
        next += 1;
        for edge in query.edges.iter().filter(|edge| edge.touches(at)) {
            let other = edge.other(at);
            if (is_upward && edge.successor != at) || other == from {
                continue;
            }
            let seen = if other < query.givens {
                &mut givens
            } else {
                &mut variables
            };
            if !seen.contains(&other) {
                seen.push(other);
            }
        }
    }
    variables.remove(0);
    givens.sort_unstable();
    (variables, givens)
}

/// Without those that lead nowhere: a wake is a hint, so what else a tuple needs is not asked.
fn trim(query: &Query, from: usize, mut variables: Vec<usize>, givens: &[usize]) -> Vec<usize> {
    loop {
        let is_there = |variable: usize| {
            variable == from || variables.contains(&variable) || givens.contains(&variable)
        };
        let dangling = variables.iter().position(|&variable| {
            let mut others: Vec<usize> = query
                .edges
                .iter()
                .filter(|edge| edge.touches(variable))
                .map(|edge| edge.other(variable))
                .filter(|other| is_there(*other))
                .collect();
            others.sort_unstable();
            others.dedup();
            others.len() <= 1
        });
        match dangling {
            Some(place) => drop(variables.remove(place)),
            None => return variables,
        }
    }
}
