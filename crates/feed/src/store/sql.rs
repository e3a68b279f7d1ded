//! The statements of queries, for both databases: nested loops, each step of them a seek in an
//! index, in an order that the database does not choose.

mod concerns;
mod conditions;
mod direction;
mod tuples;

use std::collections::HashMap;

use crate::{
    fact::Kind,
    query::{Edge, Exists, FoundBy, Query, WalkStep},
    store::{
        Seq,
        names::{IdsByName, RoleName},
    },
};

pub(super) use self::{
    concerns::ConcernSearch,
    conditions::matching_givens,
    direction::DirectionChoice,
    tuples::{CursorLevel, TupleSearch},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// A statement with its parameters.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) numbers: Vec<i64>,
    /// At most [`MAX_TABLES`].
    pub(super) tables: Vec<Table>,
}

/// A parameter: rows of numbers, all of one width.
#[derive(Clone, Debug)]
pub(super) struct Table {
    width: usize,
    rows: usize,
    pub(super) values: Vec<i64>,
}

impl Table {
    pub(super) fn of<'a>(width: usize, rows: impl ExactSizeIterator<Item = &'a [Seq]>) -> Self {
        Self {
            width,
            rows: rows.len(),
            values: rows.flatten().copied().collect(),
        }
    }

    /// For SQLite: an array of arrays.
    pub(super) fn json(&self) -> String {
        let row = |row: usize| &self.values[row * self.width..(row + 1) * self.width];
        let rows: Vec<&[i64]> = (0..self.rows).map(row).collect();
        serde_json::to_string(&rows).expect("numbers are JSON")
    }
}

/// On SQLite the placeholders of the tables come before those of the numbers.
pub(super) const MAX_TABLES: usize = 2;

/// A type or role that the query needs is not stored: nothing can be found.
#[derive(Debug)]
pub(super) struct NothingStored;

/// All types and roles that a query names.
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

struct StatementBuilder<'a> {
    dialect: Dialect,
    ids: &'a IdsByName,
    numbers: Vec<i64>,
    tables: Vec<Table>,
    /// The types of the variables in scope, by number.
    kinds: Vec<Kind>,
    /// The SQL of each variable that is known already.
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

impl<'a> StatementBuilder<'a> {
    fn new(dialect: Dialect, ids: &'a IdsByName, kinds: &[Kind]) -> Self {
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
            Dialect::Sqlite => format!("?{}", self.numbers.len() + MAX_TABLES),
            Dialect::Postgres => format!("($1[{}])", self.numbers.len()),
        }
    }

    /// A table as a subquery: `n` counts its rows from 0, `g0` and so on are its columns.
    fn table(&mut self, table: Table) -> String {
        let (width, rows) = (table.width, table.rows);
        self.tables.push(table);
        let parameter = self.tables.len();
        match self.dialect {
            Dialect::Sqlite => {
                let columns: String = (0..width)
                    .map(|column| format!(", json_extract(value, '$[{column}]') AS g{column}"))
                    .collect();
                format!("SELECT key AS n{columns} FROM json_each(?{parameter})")
            }
            Dialect::Postgres => {
                let parameter = parameter + 1;
                let columns: String = (0..width)
                    .map(|column| {
                        let first = column + 1;
                        format!(", ${parameter}[n * {width} + {first}] AS g{column}")
                    })
                    .collect();
                format!("SELECT n{columns} FROM generate_series(0, {rows} - 1) AS n ORDER BY n")
            }
        }
    }

    /// The givens are the columns of a table `g`.
    fn givens_table(&mut self, width: usize, givens: &[Vec<Seq>]) -> String {
        for given in 0..width {
            self.terms.insert(given, format!("g.g{given}"));
        }
        let rows = givens.iter().map(Vec::as_slice);
        format!("({}) g", self.table(Table::of(width, rows)))
    }

    /// The givens are numbers.
    fn givens(&mut self, given: &[Seq]) {
        for (variable, seq) in given.iter().enumerate() {
            let term = self.number(*seq);
            self.terms.insert(variable, term);
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

    fn term(&self, variable: usize) -> String {
        self.terms.get(&variable).cloned().unwrap_or_default()
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    fn kind(&mut self, variable: usize) -> Result<String, NothingStored> {
        let id = self.ids.kinds.get(&self.kinds[variable]);
        Ok(self.number(i64::from(*id.ok_or(NothingStored)?)))
    }

    fn role(&mut self, edge: &Edge) -> Result<String, NothingStored> {
        let role = (self.kinds[edge.successor].clone(), edge.role.clone());
        let id = self.ids.roles.get(&role).ok_or(NothingStored)?;
        Ok(self.number(i64::from(*id)))
    }

    /// After this step the variable is known.
    fn step(&mut self, step: &WalkStep, edges: &[Edge]) -> Result<Loop, NothingStored> {
        let alias = self.alias();
        let (table, column, mut conditions) = match step.by {
            FoundBy::Down { edge } => {
                let edge = &edges[edge];
                let (from, role) = (self.term(edge.predecessor), self.role(edge)?);
                let from = format!("{alias}.predecessor = {from}");
                let role = format!("{alias}.role_id = {role}");
                (self.edge_table(), "successor", vec![from, role])
            }
            FoundBy::Up { edge } => {
                let edge = &edges[edge];
                let (from, role) = (self.term(edge.successor), self.role(edge)?);
                let from = format!("{alias}.successor = {from}");
                let role = format!("{alias}.role_id = {role}");
                (self.edge_table(), "predecessor", vec![from, role])
            }
            FoundBy::Type => {
                let kind = self.kind(step.variable)?;
                let kind = format!("{alias}.type_id = {kind}");
                (self.fact_table(), "seq", vec![kind])
            }
        };
        self.terms
            .insert(step.variable, format!("{alias}.{column}"));
        for edge in &step.edges {
            conditions.push(self.edge(&edges[*edge])?);
        }
        // A role says which type the successor has, not which the predecessor has.
        let is_successor = edges.iter().any(|edge| edge.successor == step.variable);
        if matches!(step.by, FoundBy::Up { .. }) && !is_successor {
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
    fn edge(&mut self, edge: &Edge) -> Result<String, NothingStored> {
        let (alias, role) = (self.alias(), self.role(edge)?);
        let (successor, predecessor) = (self.term(edge.successor), self.term(edge.predecessor));
        let from = format!("{} {alias}", self.edge_table());
        let condition = format!(
            "{alias}.predecessor = {predecessor} AND {alias}.role_id = {role} \
             AND {alias}.successor = {successor}"
        );
        Ok(row_exists(&from, &condition, true))
    }

    fn is_of_kind(&mut self, variable: usize) -> Result<String, NothingStored> {
        let (alias, kind) = (self.alias(), self.kind(variable)?);
        let from = format!("{} {alias}", self.fact_table());
        let term = self.term(variable);
        let condition = format!("{alias}.seq = {term} AND {alias}.type_id = {kind}");
        Ok(row_exists(&from, &condition, true))
    }

    /// The columns of an answer.
    fn columns(&self, seqs: &[String], hashes: &[String]) -> String {
        match self.dialect {
            Dialect::Sqlite => [seqs, hashes].concat().join(", "),
            Dialect::Postgres => format!(
                "ARRAY[{}]::bigint[], ARRAY[{}]::bytea[]",
                seqs.join(", "),
                hashes.join(", ")
            ),
        }
    }

    /// ` FROM … WHERE …`: the loops between the tables `before` and `after`, in just this order.
    fn join_loops(
        &self,
        before: Option<&str>,
        loops: &[Loop],
        after: Option<&str>,
        mut conditions: Vec<String>,
    ) -> String {
        let mut tables: Vec<String> = before.map(str::to_owned).into_iter().collect();
        let mut from = match self.dialect {
            Dialect::Sqlite => {
                tables.extend((!loops.is_empty()).then(|| nested(loops)));
                conditions.extend(loops.iter().flat_map(|each| each.conditions.clone()));
                tables.join(" CROSS JOIN ")
            }
            Dialect::Postgres => {
                tables.extend(loops.iter().map(lateral));
                tables.join(" CROSS JOIN LATERAL ")
            }
        };
        from.extend(after.map(|after| format!(" CROSS JOIN {after}")));
        if !from.is_empty() {
            from.insert_str(0, " FROM ");
        }
        format!("{from} WHERE {}", all(&conditions))
    }

    fn finish(self, text: String) -> Statement {
        Statement {
            text,
            numbers: self.numbers,
            tables: self.tables,
        }
    }
}

/// The tables of nested loops.
fn nested(loops: &[Loop]) -> String {
    let tables: Vec<String> = loops
        .iter()
        .map(|each| format!("{} {}", each.table, each.alias))
        .collect();
    tables.join(" CROSS JOIN ")
}

/// Ordered inside, so that PostgreSQL does not merge it into the outer query and the loops stay in
/// their order.
fn lateral(each: &Loop) -> String {
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

/// Not by EXISTS: both databases may turn that into a join, and then choose the order of the loops.
fn row_exists(from: &str, condition: &str, is_wanted: bool) -> String {
    let is = if is_wanted { "IS NOT NULL" } else { "IS NULL" };
    format!("(SELECT 1 FROM {from} WHERE {condition} LIMIT 1) {is}")
}

fn all(conditions: &[String]) -> String {
    if conditions.is_empty() {
        return "1 = 1".into();
    }
    conditions.join(" AND ")
}
