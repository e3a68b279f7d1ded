//! The statements of queries, for both databases: nested loops, every step of them a seek in an
//! index, in an order that the database does not choose.

mod concerned;
mod conditions;
mod slice;
mod ways;

use std::collections::HashMap;

use crate::{
    fact::Kind,
    query::{By, Edge, Exists, Query, Step},
    store::{
        Position,
        names::{Ids, RoleName},
    },
};

pub(super) use self::{
    concerned::Concerns,
    slice::{Level, Walking},
    ways::Ways,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// A statement with what it is asked with.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) numbers: Vec<i64>,
    /// Rows of numbers, at most two tables.
    pub(super) tables: Vec<Table>,
}

/// Rows of equal width.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) width: usize,
    pub(super) values: Vec<i64>,
}

impl Table {
    pub(super) fn of<'a>(width: usize, rows: impl Iterator<Item = &'a Vec<i64>>) -> Self {
        Self {
            width,
            values: rows.flatten().copied().collect(),
        }
    }

    fn rows(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// For SQLite: an array of arrays.
    pub(super) fn json(&self) -> String {
        let rows: Vec<String> = self
            .values
            .chunks(self.width.max(1))
            .map(|row| {
                let row: Vec<String> = row.iter().map(i64::to_string).collect();
                format!("[{}]", row.join(","))
            })
            .collect();
        format!("[{}]", rows.join(","))
    }
}

/// Placeholders before those of the numbers on SQLite: the tables.
pub(super) const TABLES: usize = 2;

/// What nothing can be found for: a type or role that is not stored.
#[derive(Debug)]
pub(super) struct Nothing;

/// All types and roles that a query speaks of.
pub(super) fn names(query: &Query) -> (Vec<Kind>, Vec<RoleName>) {
    let mut kinds = query.variables.clone();
    let mut roles = Vec::new();
    collect(&mut kinds, &mut roles, &query.edges, &query.conditions);
    kinds.sort_unstable();
    kinds.dedup();
    roles.sort_unstable();
    roles.dedup();
    (kinds, roles)
}

fn collect(
    kinds: &mut Vec<Kind>,
    roles: &mut Vec<RoleName>,
    edges: &[Edge],
    conditions: &[Exists],
) {
    let visible = kinds.len();
    for edge in edges {
        roles.push((kinds[edge.successor].clone(), edge.role.clone()));
    }
    let mut inner = Vec::new();
    for condition in conditions {
        kinds.extend(condition.variables.iter().cloned());
        collect(kinds, roles, &condition.edges, &condition.conditions);
        inner.extend(kinds.drain(visible..));
    }
    kinds.extend(inner);
}

/// A statement in the making.
struct Text<'a> {
    dialect: Dialect,
    ids: &'a Ids,
    numbers: Vec<i64>,
    tables: Vec<Table>,
    /// Of the variables that can be spoken of here, by number.
    kinds: Vec<Kind>,
    /// How a variable is written once it is known.
    terms: HashMap<usize, String>,
    aliases: usize,
}

/// One table of the nested loops.
struct Loop {
    alias: String,
    table: &'static str,
    column: &'static str,
    conditions: Vec<String>,
}

impl<'a> Text<'a> {
    fn new(dialect: Dialect, ids: &'a Ids, kinds: &[Kind]) -> Self {
        Self {
            dialect,
            ids,
            numbers: Vec::new(),
            tables: Vec::new(),
            kinds: kinds.to_vec(),
            terms: HashMap::new(),
            aliases: 0,
        }
    }

    fn number(&mut self, number: i64) -> String {
        self.numbers.push(number);
        match self.dialect {
            Dialect::Sqlite => format!("?{}", self.numbers.len() + TABLES),
            Dialect::Postgres => format!("$1[{}]", self.numbers.len()),
        }
    }

    /// A table of numbers as a subquery: `n` counts its rows from 0, `g0` and so on are the columns.
    fn table(&mut self, table: Table) -> String {
        let (width, rows) = (table.width, table.rows());
        self.tables.push(table);
        let place = self.tables.len();
        match self.dialect {
            Dialect::Sqlite => {
                let columns: String = (0..width)
                    .map(|column| format!(", json_extract(value, '$[{column}]') AS g{column}"))
                    .collect();
                format!("SELECT key AS n{columns} FROM json_each(?{place})")
            }
            Dialect::Postgres => {
                let place = place + 1;
                let columns: String = (0..width)
                    .map(|column| {
                        let first = column + 1;
                        format!(", ${place}[n * {width} + {first}] AS g{column}")
                    })
                    .collect();
                format!("SELECT n{columns} FROM generate_series(0, {rows} - 1) AS n ORDER BY n")
            }
        }
    }

    fn fact_table(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "feed_fact",
            Dialect::Postgres => "wakeline.feed_fact",
        }
    }

    fn edge_table(&self) -> &'static str {
        match self.dialect {
            Dialect::Sqlite => "feed_edge",
            Dialect::Postgres => "wakeline.feed_edge",
        }
    }

    fn given(&mut self, given: &[Position]) {
        for (variable, position) in given.iter().enumerate() {
            let term = self.number(*position);
            let term = match self.dialect {
                Dialect::Sqlite => term,
                Dialect::Postgres => format!("({term})"),
            };
            self.terms.insert(variable, term);
        }
    }

    fn term(&self, variable: usize) -> String {
        self.terms.get(&variable).cloned().unwrap_or_default()
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    fn kind(&mut self, variable: usize) -> Result<String, Nothing> {
        let id = self.ids.kinds.get(&self.kinds[variable]).ok_or(Nothing)?;
        Ok(self.number(i64::from(*id)))
    }

    fn role(&mut self, edge: &Edge) -> Result<String, Nothing> {
        let role = (self.kinds[edge.successor].clone(), edge.role.clone());
        let id = self.ids.roles.get(&role).ok_or(Nothing)?;
        Ok(self.number(i64::from(*id)))
    }

    /// From here on the variable is known.
    fn step(&mut self, step: &Step, edges: &[Edge]) -> Result<Loop, Nothing> {
        let alias = self.alias();
        let (table, column, mut conditions) = match step.by {
            By::Down { edge } => {
                let edge = &edges[edge];
                let (from, role) = (self.term(edge.predecessor), self.role(edge)?);
                let from = format!("{alias}.predecessor = {from}");
                let role = format!("{alias}.role_id = {role}");
                (self.edge_table(), "successor", vec![from, role])
            }
            By::Up { edge } => {
                let edge = &edges[edge];
                let (from, role) = (self.term(edge.successor), self.role(edge)?);
                let from = format!("{alias}.successor = {from}");
                let role = format!("{alias}.role_id = {role}");
                (self.edge_table(), "predecessor", vec![from, role])
            }
            By::Type => {
                let kind = self.kind(step.variable)?;
                let kind = format!("{alias}.type_id = {kind}");
                (self.fact_table(), "position", vec![kind])
            }
        };
        self.terms
            .insert(step.variable, format!("{alias}.{column}"));
        for edge in &step.edges {
            conditions.push(self.edge(&edges[*edge])?);
        }
        // A role says which type the successor has, not which the predecessor has.
        let is_said = edges.iter().any(|edge| edge.successor == step.variable);
        if matches!(step.by, By::Up { .. }) && !is_said {
            conditions.push(self.is_of_kind(step.variable)?);
        }
        Ok(Loop {
            alias,
            table,
            column,
            conditions,
        })
    }

    /// Both ends are known.
    fn edge(&mut self, edge: &Edge) -> Result<String, Nothing> {
        let (alias, role) = (self.alias(), self.role(edge)?);
        let (successor, predecessor) = (self.term(edge.successor), self.term(edge.predecessor));
        let from = format!("{} {alias}", self.edge_table());
        let matched = format!(
            "{alias}.predecessor = {predecessor} AND {alias}.role_id = {role} \
             AND {alias}.successor = {successor}"
        );
        Ok(found(&from, &matched, true))
    }

    fn is_of_kind(&mut self, variable: usize) -> Result<String, Nothing> {
        let (alias, kind) = (self.alias(), self.kind(variable)?);
        let from = format!("{} {alias}", self.fact_table());
        let term = self.term(variable);
        let matched = format!("{alias}.position = {term} AND {alias}.type_id = {kind}");
        Ok(found(&from, &matched, true))
    }

    /// The tables of nested loops, in just this order.
    fn nested(&self, loops: &[Loop]) -> String {
        let tables: Vec<String> = loops
            .iter()
            .map(|each| format!("{} {}", each.table, each.alias))
            .collect();
        tables.join(" CROSS JOIN ")
    }

    /// The same with what they have to match.
    fn select(&self, loops: &[Loop]) -> (String, String) {
        match self.dialect {
            Dialect::Sqlite => {
                let conditions = loops.iter().flat_map(|each| each.conditions.clone());
                (self.nested(loops), all(&conditions.collect::<Vec<_>>()))
            }
            Dialect::Postgres => {
                let tables: Vec<String> = loops.iter().map(slice::lateral).collect();
                (tables.join(" CROSS JOIN LATERAL "), all(&[]))
            }
        }
    }

    fn asked(self, text: String) -> Asked {
        Asked {
            text,
            numbers: self.numbers,
            tables: self.tables,
        }
    }
}

/// Whether there is such a row. Not by EXISTS: both databases may turn that into a join, and then
/// the order of the loops is theirs.
fn found(from: &str, matched: &str, is_wanted: bool) -> String {
    let is = if is_wanted { "IS NOT NULL" } else { "IS NULL" };
    format!("(SELECT 1 FROM {from} WHERE {matched} LIMIT 1) {is}")
}

fn all(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return "1 = 1".into();
    }
    conditions.join(" AND ")
}
