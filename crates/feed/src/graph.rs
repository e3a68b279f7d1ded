//! The graph format `application/x-jinaga-graph-v1`: facts as lines of JSON that name each other by
//! index, predecessors first.

mod reader;
mod writer;

use thiserror::Error;

pub use reader::Reader;
pub use writer::{MissingPredecessor, Writer};

use crate::fact::{InvalidFact, MAX_FIELDS};

pub const CONTENT_TYPE: &str = "application/x-jinaga-graph-v1";

/// What one graph may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line.
    pub line: usize,
    pub facts: usize,
    /// Of all facts together: an index is two bytes, the reference it stands for eighty.
    pub predecessors: usize,
    pub keys: usize,
    /// Of all facts together.
    pub signatures: usize,
}

impl Limits {
    pub const DEFAULT: Self = Self {
        line: MAX_FIELDS,
        facts: 250_000,
        predecessors: 1_000_000,
        keys: 10_000,
        signatures: 250_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a text is not a graph.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct Error {
    /// Counted from 1.
    pub line: u64,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    #[error("expected {expected}, but {unfit}")]
    Line {
        expected: &'static str,
        unfit: InvalidFact,
    },
    #[error("expected {expected}, found '{found}'")]
    Unexpected {
        expected: &'static str,
        found: Box<str>,
    },
    #[error("the graph ends too early, expected {expected}")]
    Ends { expected: &'static str },
    #[error("the predecessor '{role}' must be the index of a fact, or an array of them")]
    NoIndex { role: Box<str> },
    #[error(
        "the predecessor '{role}' is fact {index}, but only {known} facts come before this one"
    )]
    NotBefore {
        role: Box<str>,
        index: u64,
        known: usize,
    },
    #[error("expected the declaration of PK{expected}, found PK{found}")]
    KeyOrder { expected: usize, found: u64 },
    #[error("PK{index} is not declared; there are {known} keys")]
    NoKey { index: u64, known: usize },
    #[error("longer than {limit} bytes")]
    Long { limit: usize },
    #[error("more than {limit} {what}")]
    Many { what: &'static str, limit: usize },
}

#[cfg(test)]
mod tests;
