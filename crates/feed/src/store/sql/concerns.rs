//! The statement for which givens new facts concern.

use super::{Dialect, NothingStored, Statement, StatementBuilder, Table, all, nested, row_exists};
use crate::{
    query::Query,
    store::{Concern, MAX_CONCERNS, Seq, names::IdsByName},
};

/// How the givens are found from a variable.
#[derive(Debug)]
pub(in crate::store) struct ConcernSearch<'a> {
    query: &'a Query,
    variable: usize,
    /// Found by going to predecessors: variables on the way, and givens.
    above: Vec<usize>,
    above_givens: Vec<usize>,
    /// Variables between the fact and givens that are not above it.
    aside: Vec<usize>,
    /// All givens that the fact is connected with.
    givens: Vec<usize>,
}

impl<'a> ConcernSearch<'a> {
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

    /// `None` if nothing can be found: there are no facts, or their givens are not above them and
    /// none is watched.
    pub(in crate::store) fn statement(
        &self,
        dialect: Dialect,
        ids: &IdsByName,
        facts: &[Seq],
        watched: &[Vec<Seq>],
    ) -> Option<Statement> {
        let is_above = |given: &usize| self.above_givens.contains(given);
        if facts.is_empty() || (watched.is_empty() && !self.givens.iter().all(is_above)) {
            return None;
        }
        let mut sql = StatementBuilder::new(dialect, ids, &self.query.variables);
        let facts = sql.table(Table::of(1, facts.chunks(1)));
        sql.terms.insert(self.variable, "f.g0".into());
        let facts = format!("({facts}) f");
        let statement = if watched.is_empty() {
            self.above(sql, &facts)
        } else {
            self.watched(sql, &facts, watched)
        };
        statement.ok()
    }

    /// A fact may lead to the same given twice, which does no harm: to have each once, the database
    /// would have to find all first.
    fn above(
        &self,
        mut sql: StatementBuilder<'_>,
        facts: &str,
    ) -> Result<Statement, NothingStored> {
        let mut wanted = self.above.clone();
        let others = self
            .above_givens
            .iter()
            .filter(|given| **given != self.variable);
        wanted.extend(others);
        let walk = self.query.from_known(&[self.variable], wanted);
        let (loops, first) = sql.loops(&walk, &self.query.edges)?;
        let mut seqs = vec!["f.g0".to_owned()];
        seqs.extend(self.above_givens.iter().map(|given| sql.term(*given)));
        let columns = sql.columns(&seqs, &[]);
        let from = sql.join_loops(Some(facts), &loops, None, first);
        Ok(sql.finish(format!("SELECT {columns}{from} LIMIT {MAX_CONCERNS}")))
    }

    /// Every fact is compared with each of the watched givens.
    fn watched(
        &self,
        mut sql: StatementBuilder<'_>,
        facts: &str,
        watched: &[Vec<Seq>],
    ) -> Result<Statement, NothingStored> {
        let walk = self.query.from_known(&[self.variable], self.above.clone());
        let (loops, mut first) = sql.loops(&walk, &self.query.edges)?;
        let rows = watched.iter().map(Vec::as_slice);
        let table = sql.table(Table::of(self.query.givens, rows));
        let mut known = self.above.clone();
        known.push(self.variable);
        for &given in &self.givens {
            let term = format!("w.g{given}");
            if given == self.variable {
                first.push(format!("{} = {term}", sql.term(given)));
                continue;
            }
            sql.terms.insert(given, term);
            known.push(given);
        }
        let rest = self.query.from_known(&known, self.aside.clone());
        let (rest, checks) = sql.loops(&rest, &self.query.edges)?;
        first.extend(checks);
        if !rest.is_empty() {
            let conditions: Vec<String> = rest
                .iter()
                .flat_map(|each| each.conditions.clone())
                .collect();
            first.push(row_exists(&nested(&rest), &all(&conditions), true));
        }
        let columns = sql.columns(&["f.g0".to_owned(), "w.n".to_owned()], &[]);
        let from = sql.join_loops(Some(facts), &loops, Some("w"), first);
        // The table is made once, not for each fact.
        Ok(sql.finish(format!(
            "WITH w AS MATERIALIZED ({table}) SELECT DISTINCT {columns}{from}"
        )))
    }

    pub(in crate::store) fn read(&self, row: &[i64], watched: &[Vec<Seq>]) -> Option<Concern> {
        let (&fact, found) = row.split_first()?;
        let mut given = vec![None; self.query.givens];
        if watched.is_empty() {
            for (index, seq) in self.above_givens.iter().zip(found) {
                given[*index] = Some(*seq);
            }
        } else {
            let number = usize::try_from(*found.first()?).ok()?;
            let with = watched.get(number)?;
            for &index in &self.givens {
                given[index] = with.get(index).copied();
            }
        }
        Some(Concern { fact, given })
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

/// Without the variables that lead to no given: a wake is a hint, so other conditions are not
/// checked.
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
