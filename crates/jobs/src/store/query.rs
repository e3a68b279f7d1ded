//! Statements that both databases run: written once, in the SQL that PostgreSQL and SQLite share, as
//! default methods of the store's traits.
//!
//! A statement is written for PostgreSQL (`wakeline.` before tables, `$1` for parameters) with two words
//! of its own: `{in $1}` is true for one of a list of texts, and `{now}` is the time.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::StoreFuture;
use crate::{name::FullName, task::Status, topic};

/// A parameter of a statement, or a column of a row. SQLite gives every NULL the same type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(Option<i64>),
    Text(Option<String>),
    Id(Option<Uuid>),
    Flag(Option<bool>),
    Bytes(Option<Bytes>),
    Texts(Option<Vec<String>>),
    Numbers(Vec<i64>),
    Ids(Vec<Uuid>),
    BytesList(Vec<Bytes>),
    OptionalTexts(Vec<Option<String>>),
}

/// A row of an answer, its columns by their names.
#[derive(Clone, Debug)]
pub struct Row {
    pub names: Arc<[String]>,
    pub values: Vec<Value>,
}

impl Row {
    /// Panics if the statement selects no such column, or one of another type.
    pub fn get<T: Column>(&self, name: &str) -> T {
        let index = self.names.iter().position(|known| known == name);
        let value = &self.values[index.unwrap_or_else(|| panic!("no column {name}"))];
        T::read(value).unwrap_or_else(|| panic!("the column {name} has another type: {value:?}"))
    }

    /// Whether the column is NULL.
    #[must_use]
    pub fn is_null(&self, name: &str) -> bool {
        self.get::<Option<AnyValue>>(name).is_none()
    }
}

/// The types that a column can be read as.
pub trait Column: Sized {
    fn read(value: &Value) -> Option<Self>;
}

struct AnyValue;

impl Column for AnyValue {
    fn read(_: &Value) -> Option<Self> {
        Some(Self)
    }
}

impl<T: Column> Column for Option<T> {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(None)
            | Value::Text(None)
            | Value::Id(None)
            | Value::Flag(None)
            | Value::Bytes(None) => Some(None),
            value => T::read(value).map(Some),
        }
    }
}

macro_rules! columns {
    ($( $kind:ty: $( $pattern:pat => $read:expr ),+; )+) => { $(
        impl Column for $kind {
            fn read(value: &Value) -> Option<Self> {
                match value {
                    $( $pattern => $read, )+
                    _ => None,
                }
            }
        }
    )+ };
}

columns! {
    i64: Value::Number(number) => *number;
    i32: Value::Number(Some(number)) => i32::try_from(*number).ok();
    bool: Value::Flag(flag) => *flag, Value::Number(Some(number)) => Some(*number != 0);
    String: Value::Text(text) => text.clone();
    Bytes: Value::Bytes(bytes) => bytes.clone();
    Uuid: Value::Id(id) => *id, Value::Bytes(Some(bytes)) => Uuid::from_slice(bytes).ok();
    Vec<Uuid>: Value::Ids(ids) => Some(ids.clone());
    FullName: Value::Text(Some(text)) => FullName::parse(text);
    Status: Value::Number(Some(number)) => Status::from_number(*number);
}

macro_rules! values {
    ($( $kind:ty => $variant:ident ),+ $(,)?) => { $(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(value.into())
            }
        }
    )+ };
}

values! {
    i64 => Number, Option<i64> => Number, String => Text, Option<String> => Text,
    Uuid => Id, Option<Uuid> => Id, bool => Flag, Option<bool> => Flag, Bytes => Bytes,
    Option<Bytes> => Bytes, Vec<String> => Texts, Option<Vec<String>> => Texts,
    Vec<i64> => Numbers, Vec<Uuid> => Ids, Vec<Bytes> => BytesList,
    Vec<Option<String>> => OptionalTexts,
}

/// A list of [`Value`]s.
macro_rules! values_of {
    ($( $value:expr ),* $(,)?) => { vec![$( $crate::store::Value::from($value) ),*] };
}
pub(crate) use values_of;

/// How a write commits, with its kind for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// With the other writes of the same moment.
    Shared(&'static str),
    /// In a transaction of its own; on SQLite all writes share.
    Alone(&'static str),
}

impl Commit {
    #[must_use]
    pub fn kind(self) -> &'static str {
        let (Self::Shared(kind) | Self::Alone(kind)) = self;
        kind
    }
}

/// The operations that both databases offer to the statements that are written once.
pub trait Query: Send + Sync {
    /// The rows of a statement, one read of its own.
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>>;

    /// The rows of a write that is one statement. [`write`] is the way to run it.
    fn written_rows(
        &self,
        commit: Commit,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'static, Result<Vec<Row>, Error>>;
}

/// A write that is one statement. `read` makes a value of its rows.
pub(crate) fn write<T: Send + 'static>(
    store: &(impl Query + ?Sized),
    commit: Commit,
    statement: &'static str,
    parameters: Vec<Value>,
    wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
    read: impl FnOnce(&[Row]) -> Result<T, Error> + Send + 'static,
) -> Write<T> {
    let rows = store.written_rows(commit, statement, parameters);
    Write::new(topic::DOOR, async move { read(&rows.await?) }, wakes)
}
