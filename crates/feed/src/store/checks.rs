//! Whether a query finds anything, as SQL for both databases.

use std::{fmt::Write as _, sync::Arc};

use crate::query::{Edge, Exists, Query};

/// How the two databases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Postgres,
    Sqlite,
}

impl Dialect {
    fn table(self, name: &str) -> String {
        match self {
            Self::Postgres => format!("wakeline.feed_{name}"),
            Self::Sqlite => format!("feed_{name}"),
        }
    }

    fn parameter(self, number: usize) -> String {
        match self {
            Self::Postgres => format!("$2[{number}]"),
            Self::Sqlite => format!("?{number}"),
        }
    }
}

/// `SELECT 1 …`, and the names of types and roles that are its parameters, from `first` on.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) text: String,
    pub(super) names: Vec<Arc<str>>,
}

impl Check {
    /// `given` says how the text calls a given, and `first` what the names' first parameter is.
    pub(super) fn of(
        query: &Query,
        dialect: Dialect,
        given: impl Fn(usize) -> String,
        first: usize,
    ) -> Self {
        let mut writer = Writer {
            dialect,
            first,
            names: Vec::new(),
            tables: 0,
        };
        let places = (0..query.givens).map(|index| Some(given(index))).collect();
        let kinds = query.variables.clone();
        let text = writer.scope(
            places,
            &kinds,
            &query.edges,
            &query.equals,
            &query.conditions,
        );
        Self {
            text,
            names: writer.names,
        }
    }
}

struct Writer {
    dialect: Dialect,
    first: usize,
    names: Vec<Arc<str>>,
    tables: usize,
}

impl Writer {
    /// `places` are those of the variables that are known from outside; `kinds` of all.
    fn scope(
        &mut self,
        mut places: Vec<Option<String>>,
        kinds: &[Arc<str>],
        edges: &[Edge],
        equals: &[(usize, usize)],
        conditions: &[Exists],
    ) -> String {
        let outside = places.len();
        places.resize(kinds.len(), None);
        let mut tables = Vec::new();
        let mut terms = Vec::new();
        for edge in edges {
            self.tables += 1;
            let name = format!("e{}", self.tables);
            tables.push(format!("{} {name}", self.dialect.table("edge")));
            let role = self.role(&kinds[edge.successor], &edge.role);
            terms.push(format!("{name}.role_id = {role}"));
            for (variable, column) in [
                (edge.successor, "successor"),
                (edge.predecessor, "predecessor"),
            ] {
                let column = format!("{name}.{column}");
                match &places[variable] {
                    Some(place) => terms.push(format!("{column} = {place}")),
                    None => places[variable] = Some(column),
                }
            }
        }
        for (one, other) in equals {
            if let (Some(one), Some(other)) = (&places[*one], &places[*other]) {
                terms.push(format!("{one} = {other}"));
            }
        }
        // A role belongs to the successor's type, but leads to a predecessor of any.
        for (variable, kind) in kinds.iter().enumerate().skip(outside) {
            let Some(place) = &places[variable] else {
                // Only a condition speaks of it: any fact of its type.
                self.tables += 1;
                let name = format!("f{}", self.tables);
                tables.push(format!("{} {name}", self.dialect.table("fact")));
                let kind = self.kind(kind);
                terms.push(format!("{name}.type_id = {kind}"));
                places[variable] = Some(format!("{name}.position"));
                continue;
            };
            if !edges.iter().any(|edge| edge.successor == variable) {
                self.tables += 1;
                let name = format!("f{}", self.tables);
                tables.push(format!("{} {name}", self.dialect.table("fact")));
                let place = place.clone();
                let kind = self.kind(kind);
                terms.push(format!(
                    "{name}.position = {place} AND {name}.type_id = {kind}"
                ));
            }
        }
        for condition in conditions {
            let kinds: Vec<_> = kinds.iter().chain(&condition.variables).cloned().collect();
            let inner = self.scope(
                places.clone(),
                &kinds,
                &condition.edges,
                &condition.equals,
                &condition.conditions,
            );
            let not = if condition.exists { "" } else { "NOT " };
            terms.push(format!("{not}EXISTS ({inner})"));
        }
        let mut text = "SELECT 1".to_owned();
        if !tables.is_empty() {
            let _ = write!(text, " FROM {}", tables.join(", "));
        }
        if !terms.is_empty() {
            let _ = write!(text, " WHERE {}", terms.join(" AND "));
        }
        text
    }

    /// NULL for one that nobody has used yet: nothing is equal to it.
    fn role(&mut self, kind: &Arc<str>, role: &Arc<str>) -> String {
        let (role_table, type_table) = (self.dialect.table("role"), self.dialect.table("type"));
        let (kind, role) = (self.name(kind), self.name(role));
        format!(
            "(SELECT r.id FROM {role_table} r JOIN {type_table} t ON t.id = r.type_id \
             WHERE t.name = {kind} AND r.name = {role})"
        )
    }

    fn kind(&mut self, kind: &Arc<str>) -> String {
        let table = self.dialect.table("type");
        let kind = self.name(kind);
        format!("(SELECT t.id FROM {table} t WHERE t.name = {kind})")
    }

    fn name(&mut self, name: &Arc<str>) -> String {
        let known = self.names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.clone());
            self.names.len() - 1
        });
        self.dialect.parameter(self.first + index)
    }
}
