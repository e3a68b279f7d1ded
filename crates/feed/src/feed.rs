//! A feed: a specification cut to one list of tuples, and where it begins.

use std::sync::Arc;

use crate::{fact::Reference, query::Query, specification::Specification};

/// A declared feed. Clients know it by its hash.
#[derive(Debug)]
pub struct Feed {
    /// URL-safe.
    pub hash: Arc<str>,
    pub specification: Specification,
    pub query: Arc<Query>,
    /// In the order of the specification's givens.
    pub given: Vec<Reference>,
    /// The one user that it is for, where a distribution rule has bound it to one.
    pub owner: Option<Reference>,
}
