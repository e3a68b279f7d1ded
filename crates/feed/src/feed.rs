//! A feed: a specification cut to one list of tuples, and where it begins.

use std::sync::Arc;

use crate::{fact::Reference, query::Query, specification::Specification};

/// As somebody asked for it. Its hash is what clients know it by.
#[derive(Debug)]
pub struct Feed {
    /// URL-safe.
    pub hash: Arc<str>,
    pub specification: Specification,
    pub query: Arc<Query>,
    /// In the order of the specification's givens.
    pub given: Vec<Reference>,
    /// Whose it is, where a distribution rule has bound it to a user.
    pub owner: Option<Reference>,
}
