//! What the databases are asked: facts that are connected in a given way. No SQL here.

use std::sync::Arc;

use crate::fact::Kind;

/// Facts (variables) that are connected by roles (edges). The first [`Query::givens`] variables are
/// given; paths through several roles have a variable for each fact on the way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    pub givens: usize,
    /// Each after at least one that it is connected with, so that they can be found in this order.
    pub variables: Vec<Kind>,
    pub edges: Vec<Edge>,
    pub conditions: Vec<Exists>,
    /// The variables that are a tuple, in the order of the matches.
    pub outputs: Vec<usize>,
}

/// `successor` has `predecessor` under `role`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    pub successor: usize,
    pub role: Arc<str>,
    pub predecessor: usize,
}

/// There is, or is not, a way to find these too. Its own variables are numbered after those of what
/// it is a condition of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exists {
    pub exists: bool,
    pub variables: Vec<Kind>,
    pub edges: Vec<Edge>,
    pub conditions: Vec<Exists>,
}
