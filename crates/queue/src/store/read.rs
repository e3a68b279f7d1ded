//! Questions that both databases answer. They are written once, in the SQL that PostgreSQL and
//! SQLite share, over views that have the same columns in both.
//!
//! A statement is written for PostgreSQL (`wakeline.` before tables, `$1` for parameters) with two
//! words of its own: `{now}` is the store's time in microseconds, `{at $1}` a parameter of
//! microseconds as the time that tables have.

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_store::Error;

/// What goes into a question and what comes out of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&Option<String>> for Value {
    fn from(text: &Option<String>) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Uuid> for Value {
    fn from(id: Uuid) -> Self {
        Self::Id(Some(id))
    }
}

/// A row of an answer. The getters expect what the statement selects.
#[derive(Clone, Debug, PartialEq)]
pub struct Row(pub Vec<Value>);

impl Row {
    /// Nothing counts as zero.
    #[must_use]
    pub fn number(&self, column: usize) -> i64 {
        self.maybe_number(column).unwrap_or_default()
    }

    #[must_use]
    pub fn maybe_number(&self, column: usize) -> Option<i64> {
        match &self.0[column] {
            Value::Number(number) => *number,
            // SQLite gives every NULL the same type.
            Value::Text(None) | Value::Id(None) => None,
            other => unreachable!("column {column} is no number: {other:?}"),
        }
    }

    #[must_use]
    pub fn text(&self, column: usize) -> String {
        self.maybe_text(column).unwrap_or_default()
    }

    #[must_use]
    pub fn maybe_text(&self, column: usize) -> Option<String> {
        match &self.0[column] {
            Value::Text(text) => text.clone(),
            Value::Number(None) | Value::Id(None) => None,
            other => unreachable!("column {column} is no text: {other:?}"),
        }
    }

    #[must_use]
    pub fn maybe_id(&self, column: usize) -> Option<Uuid> {
        match &self.0[column] {
            Value::Id(id) => *id,
            Value::Number(None) | Value::Text(None) => None,
            other => unreachable!("column {column} is no id: {other:?}"),
        }
    }

    #[must_use]
    pub fn id(&self, column: usize) -> Uuid {
        self.maybe_id(column).unwrap_or_default()
    }
}

/// Positions of a partition: from the first on, and before the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    pub partition: i64,
    pub from: i64,
    pub to: i64,
}

/// Where a segment is, without what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub partition: i64,
    pub first: i64,
    pub last: i64,
    pub created_us: i64,
}

pub trait Read: Send + Sync {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>>;

    /// The newest segments that have something of these slices, newest first, `count` at most.
    /// Reads up to so many of each slice.
    fn heads(&self, slices: Vec<Slice>, count: i64) -> BoxFuture<'_, Result<Vec<Head>, Error>>;

    /// For each partition and time, the position from which everything came then or later.
    fn positions_at(&self, asked: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>>;

    /// How the database itself is doing, as JSON.
    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>>;
}
