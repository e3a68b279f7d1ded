//! Reads, written once for both databases in the SQL that PostgreSQL and SQLite share, over tables
//! and views that have the same columns in both.
//!
//! A statement is written for PostgreSQL (`wakeline.` before tables, `$1` for parameters) with three
//! words of its own: `{now}` is the store's time in microseconds, `{at $1}` a parameter of
//! microseconds as the time that tables have, `{us column}` a column of time as microseconds.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_store::Error;

/// A parameter of a statement, or a column of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
}

macro_rules! values {
    ($($type:ty: |$from:ident| $value:expr;)+) => {
        $(impl From<$type> for Value {
            fn from($from: $type) -> Self {
                $value
            }
        })+
    };
}

values! {
    i64: |number| Self::Number(Some(number));
    Option<i64>: |number| Self::Number(number);
    &str: |text| Self::Text(Some(text.to_owned()));
    &Option<String>: |text| Self::Text(text.clone());
    Uuid: |id| Self::Id(Some(id));
}

/// A row of an answer. Its columns are read by the names that the statement gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub columns: Arc<[String]>,
    pub values: Vec<Value>,
}

impl Row {
    fn value(&self, column: &str) -> &Value {
        let mut columns = self.columns.iter();
        let index = columns.position(|name| name == column);
        &self.values[index.unwrap_or_else(|| panic!("no column {column} was selected"))]
    }

    /// NULL counts as zero.
    #[must_use]
    pub fn number(&self, column: &str) -> i64 {
        self.maybe_number(column).unwrap_or_default()
    }

    #[must_use]
    pub fn maybe_number(&self, column: &str) -> Option<i64> {
        match self.value(column) {
            Value::Number(number) => *number,
            // SQLite gives every NULL the same type.
            Value::Text(None) | Value::Id(None) => None,
            other => unreachable!("column {column} is no number: {other:?}"),
        }
    }

    #[must_use]
    pub fn text(&self, column: &str) -> String {
        self.maybe_text(column).unwrap_or_default()
    }

    #[must_use]
    pub fn maybe_text(&self, column: &str) -> Option<String> {
        match self.value(column) {
            Value::Text(text) => text.clone(),
            Value::Number(None) | Value::Id(None) => None,
            other => unreachable!("column {column} is no text: {other:?}"),
        }
    }

    #[must_use]
    pub fn maybe_id(&self, column: &str) -> Option<Uuid> {
        match self.value(column) {
            Value::Id(id) => *id,
            Value::Number(None) | Value::Text(None) => None,
            other => unreachable!("column {column} is no id: {other:?}"),
        }
    }

    #[must_use]
    pub fn id(&self, column: &str) -> Uuid {
        self.maybe_id(column).unwrap_or_default()
    }
}

/// Positions of a partition: `from` is the first, `to` is behind the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRange {
    pub partition: i64,
    pub from: i64,
    pub to: i64,
}

/// Which messages a segment has, without the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpan {
    pub partition: i64,
    pub first: i64,
    pub last: i64,
    pub created_us: i64,
}

/// Reads for people. Each method is one statement or one snapshot and changes nothing, so repeating
/// or dropping it has no effect.
pub trait ReadStore: Send + Sync {
    /// The rows of a statement, which is written as the module says. `kind` is its metric label.
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'_, Result<Vec<Row>, Error>>;

    /// The newest segments that have messages of these ranges, newest first, `count` at most. The
    /// database reads up to `count` segments of each range.
    fn segment_spans(
        &self,
        ranges: Vec<PositionRange>,
        count: i64,
    ) -> BoxFuture<'_, Result<Vec<SegmentSpan>, Error>>;

    /// For each partition and time, the first position whose message came at that time or later.
    fn positions_at(&self, times: Vec<(i64, i64)>) -> BoxFuture<'_, Result<Vec<i64>, Error>>;

    /// The database's own statistics, as JSON.
    fn health(&self) -> BoxFuture<'_, Result<serde_json::Value, Error>>;
}
