//! Conditions: facts that must exist or must not.

use super::{Dialect, Loop, NothingStored, Statement, StatementBuilder, all, nested, row_exists};
use crate::{
    query::{Edge, Exists, Query, Walk},
    store::{Seq, names::IdsByName},
};

/// A condition, as far as it is known without asking the database.
pub(super) enum ConditionSql {
    Always,
    Never,
    Sql(String),
}

/// The statement for which of many givens a query finds anything: `n` of each. An error is the
/// answer for all of them, which is known without asking.
pub(in crate::store) fn matching_givens(
    dialect: Dialect,
    ids: &IdsByName,
    query: &Query,
    givens: &[Vec<Seq>],
) -> Result<Statement, bool> {
    let (given_kinds, own_kinds) = query.variables.split_at(query.givens);
    let mut sql = StatementBuilder::new(dialect, ids, given_kinds);
    let table = sql.givens_table(query.givens, givens);
    let whole = Exists {
        exists: true,
        variables: own_kinds.to_vec(),
        edges: query.edges.clone(),
        equals: query.equals.clone(),
        conditions: query.conditions.clone(),
    };
    let condition = match sql.exists(&whole, query.givens) {
        ConditionSql::Always => return Err(true),
        ConditionSql::Never => return Err(false),
        ConditionSql::Sql(condition) => condition,
    };
    let columns = sql.columns(&["g.n".to_owned()], &[]);
    let from = sql.join_loops(Some(&table), &[], None, vec![condition]);
    Ok(sql.finish(format!("SELECT {columns}{from}")))
}

impl StatementBuilder<'_> {
    /// `base`: variables that are numbered before those of the condition.
    pub(super) fn exists(&mut self, condition: &Exists, base: usize) -> ConditionSql {
        let numbers = self.numbers.len();
        self.kinds.extend(condition.variables.iter().cloned());
        let inside = self.inside(condition, base);
        self.kinds.truncate(base);
        for variable in base..base + condition.variables.len() {
            self.terms.remove(&variable);
        }
        let answer = |is_true| match is_true {
            true => ConditionSql::Always,
            false => ConditionSql::Never,
        };
        match inside {
            Ok(Some(text)) => ConditionSql::Sql(text),
            Ok(None) => answer(condition.exists),
            Err(NothingStored) => {
                self.numbers.truncate(numbers);
                answer(!condition.exists)
            }
        }
    }

    /// `None` if the condition asks for nothing.
    fn inside(&mut self, condition: &Exists, base: usize) -> Result<Option<String>, NothingStored> {
        let walk = condition.walk(base);
        let (mut loops, mut conditions) = self.loops(&walk, &condition.edges)?;
        for (one, other) in &condition.equals {
            conditions.push(format!("{} = {}", self.term(*one), self.term(*other)));
        }
        let inner = base + condition.variables.len();
        for condition in &condition.conditions {
            match self.exists(condition, inner) {
                ConditionSql::Always => {}
                ConditionSql::Never => return Err(NothingStored),
                ConditionSql::Sql(text) => conditions.push(text),
            }
        }
        for each in &mut loops {
            conditions.append(&mut each.conditions);
        }
        if loops.is_empty() && conditions.is_empty() {
            return Ok(None);
        }
        let from = if loops.is_empty() {
            "(SELECT 1) one".into()
        } else {
            nested(&loops)
        };
        Ok(Some(row_exists(&from, &all(&conditions), condition.exists)))
    }

    /// The loops of a walk, and the conditions before them.
    pub(super) fn loops(
        &mut self,
        walk: &Walk,
        edges: &[Edge],
    ) -> Result<(Vec<Loop>, Vec<String>), NothingStored> {
        let first = walk.first.iter().map(|edge| self.edge(&edges[*edge]));
        let first = first.collect::<Result<_, _>>()?;
        let loops = walk.steps.iter().map(|step| self.step(step, edges));
        Ok((loops.collect::<Result<_, _>>()?, first))
    }

    /// A tuple counts once: of all ways to it through these hidden variables, the first one is
    /// taken.
    pub(super) fn is_first_path(
        &mut self,
        query: &Query,
        group: &[usize],
    ) -> Result<String, NothingStored> {
        let base = query.variables.len();
        let twin = |variable: usize| match group.iter().position(|hidden| *hidden == variable) {
            Some(index) => base + index,
            None => variable,
        };
        let edges: Vec<Edge> = query
            .edges
            .iter()
            .filter(|edge| group.contains(&edge.successor) || group.contains(&edge.predecessor))
            .map(|edge| Edge {
                successor: twin(edge.successor),
                role: edge.role.clone(),
                predecessor: twin(edge.predecessor),
            })
            .collect();
        let twins = Exists {
            exists: false,
            variables: group
                .iter()
                .map(|hidden| query.variables[*hidden].clone())
                .collect(),
            edges,
            equals: Vec::new(),
            conditions: Vec::new(),
        };
        self.kinds.extend(twins.variables.iter().cloned());
        let (loops, mut conditions) = self.loops(&twins.walk(base), &twins.edges)?;
        conditions.extend(loops.iter().flat_map(|each| each.conditions.clone()));
        let own: Vec<String> = group.iter().map(|hidden| self.term(*hidden)).collect();
        let other: Vec<String> = (base..base + group.len())
            .map(|twin| self.term(twin))
            .collect();
        conditions.push(format!("({}) < ({})", other.join(", "), own.join(", ")));
        self.kinds.truncate(base);
        for twin in base..base + group.len() {
            self.terms.remove(&twin);
        }
        Ok(row_exists(&nested(&loops), &all(&conditions), false))
    }
}
