//! A feed as the databases see it: facts that are connected by roles. No SQL here.

mod build;
mod walk;

use std::sync::Arc;

use crate::{
    fact::Kind,
    specification::{Label, Match, Name, Specification},
};

pub use walk::{FoundBy, Walk, WalkStep};

/// Variables of a query and of all its conditions.
pub const MAX_VARIABLES: usize = 128;
/// Variables in one join: each is a table, of which SQLite takes 64. Some are for the givens.
pub const MAX_TOGETHER: usize = 60;
/// Conditions inside of conditions.
pub const MAX_DEPTH: usize = 16;

/// Facts (variables) that are connected by roles (edges). The first [`Query::givens`] variables are
/// given; paths through several roles have a variable for each fact on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    pub givens: usize,
    /// Each variable after at least one that it is connected with, so that they can be found in
    /// this order.
    pub variables: Vec<Kind>,
    pub edges: Vec<Edge>,
    /// Variables that must be the same fact.
    pub equals: Vec<(usize, usize)>,
    pub conditions: Vec<Exists>,
    /// The variables that are a tuple, in the order of the matches. A given may be among them.
    pub outputs: Vec<usize>,
}

/// `successor` has `predecessor` under `role`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    pub successor: usize,
    pub role: Arc<str>,
    pub predecessor: usize,
}

/// A condition: these facts exist, too, or do not. Its own variables are numbered after the
/// variables of the query or condition that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exists {
    pub exists: bool,
    pub variables: Vec<Kind>,
    pub edges: Vec<Edge>,
    pub equals: Vec<(usize, usize)>,
    pub conditions: Vec<Exists>,
}

/// Why a specification cannot be a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the label {0} is not defined")]
    UnknownLabel(Name),
    #[error("the match {0} has no path to a fact that is known before it")]
    Unconnected(Name),
    #[error("the match {label} compares a {left} with a {right}")]
    Mismatch {
        label: Name,
        left: Kind,
        right: Kind,
    },
    #[error("the specification has more than {MAX_VARIABLES} facts")]
    TooLarge,
    #[error("the specification connects more than {MAX_TOGETHER} facts with one another")]
    TooMuchTogether,
    #[error("the specification has conditions more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

impl Query {
    /// The matches, from the givens on.
    pub fn of(givens: &[Label], matches: &[Match]) -> Result<Self, Error> {
        build::query(givens, &[], matches)
    }

    /// The matches of a specification, with the conditions on its givens.
    pub fn of_specification(specification: &Specification) -> Result<Self, Error> {
        let givens: Vec<Label> = specification
            .givens
            .iter()
            .map(|given| given.label.clone())
            .collect();
        let conditions: Vec<_> = specification
            .givens
            .iter()
            .flat_map(|given| &given.conditions)
            .collect();
        let query = build::query(&givens, &conditions, &specification.matches)?;
        // From a new fact on, the givens are variables to find, too.
        if query.variables.len() > MAX_TOGETHER {
            return Err(Error::TooMuchTogether);
        }
        Ok(query)
    }

    /// The variables that the newest fact of a tuple can stand for: a predecessor of another is
    /// never the newest. A given can be among them.
    #[must_use]
    pub fn arrivals(&self) -> Vec<usize> {
        (0..self.variables.len())
            .filter(|variable| self.edges.iter().all(|edge| edge.predecessor != *variable))
            .collect()
    }

    /// Variables that are neither given nor of the tuple, in groups that are connected without
    /// going through one that is. A tuple is the same whichever way it was found.
    #[must_use]
    pub fn hidden(&self) -> Vec<Vec<usize>> {
        let mut rest: Vec<usize> = (self.givens..self.variables.len())
            .filter(|variable| !self.outputs.contains(variable))
            .collect();
        let mut groups = Vec::new();
        while !rest.is_empty() {
            let mut group = vec![rest.remove(0)];
            let mut next = 0;
            while let Some(&from) = group.get(next) {
                next += 1;
                for edge in self.edges.iter().filter(|edge| edge.touches(from)) {
                    let other = edge.other(from);
                    if let Some(place) = rest.iter().position(|variable| *variable == other) {
                        group.push(rest.remove(place));
                    }
                }
            }
            group.sort_unstable();
            groups.push(group);
        }
        groups
    }
}

impl Edge {
    #[must_use]
    pub fn touches(&self, variable: usize) -> bool {
        self.successor == variable || self.predecessor == variable
    }

    /// The other end.
    #[must_use]
    pub fn other(&self, variable: usize) -> usize {
        if self.successor == variable {
            self.predecessor
        } else {
            self.successor
        }
    }
}

impl Exists {
    /// The variables of what it is a condition of, that it or its own conditions speak of.
    #[must_use]
    pub fn outer(&self, base: usize) -> Vec<usize> {
        let edges = self
            .edges
            .iter()
            .flat_map(|edge| [edge.successor, edge.predecessor]);
        let equals = self.equals.iter().flat_map(|(one, other)| [*one, *other]);
        let inner = self
            .conditions
            .iter()
            .flat_map(|condition| condition.outer(base + self.variables.len()));
        let mut outer: Vec<usize> = edges
            .chain(equals)
            .chain(inner)
            .filter(|variable| *variable < base)
            .collect();
        outer.sort_unstable();
        outer.dedup();
        outer
    }
}
