//! A setting's value as parsed, and the types that it becomes in the `Config`.

use std::path::PathBuf;
use std::time::Duration;

use super::listen::Listen;
use super::secret::{Secret, Url};

/// A value that fits its kind. No `Debug`: it may be a secret.
pub(super) enum Value {
    Text(String),
    Bool(bool),
    Integer(u64),
    Bytes(u64),
    Milliseconds(u64),
    Listen(Listen),
    Url(String),
    List(Vec<String>),
    Path(PathBuf),
}

/// The database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A file in the data directory.
    Sqlite,
    /// A PostgreSQL database.
    Postgres(Url),
}

/// Where a new consumer group begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscription {
    All,
    New,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Where results of providers are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultBackend {
    Store,
    Redis,
    Files,
}

impl ResultBackend {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "store" => Some(Self::Store),
            "redis" => Some(Self::Redis),
            "files" => Some(Self::Files),
            _ => None,
        }
    }
}

/// The status of a read that the provider did not answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutStatus {
    GatewayTimeout,
    NotFound,
}

/// What to do with a field that no route knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    Refuse,
    Warn,
}

/// Which algorithms of signed tokens are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The one of each key.
    Auto,
    Hs256,
    Rs256,
    EdDsa,
}

/// Panics if a row of the table pairs a kind with a type that cannot hold its values; a test loads
/// every setting at its bounds to show that no row does.
pub(super) trait FromValue {
    fn from_value(value: &Value) -> Self;
}

macro_rules! from_value {
    ($( $type:ty: $pattern:pat => $result:expr; )*) => { $(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Self {
                match value {
                    $pattern => $result,
                    _ => panic!(concat!("this kind of setting is no ", stringify!($type))),
                }
            }
        }
    )* };
}

from_value! {
    bool: Value::Bool(value) => *value;
    u32: Value::Integer(number) => u32::try_from(*number).expect("the range fits the type");
    usize: Value::Integer(number) | Value::Bytes(number) => usize::try_from(*number).expect("the range fits the type");
    Duration: Value::Milliseconds(number) => Duration::from_millis(*number);
    Listen: Value::Listen(listen) => listen.clone();
    PathBuf: Value::Path(path) => path.clone();
    String: Value::Text(text) => text.clone();
    Vec<Secret>: Value::List(items) => items.iter().cloned().map(Secret::new).collect();
    Vec<String>: Value::List(items) => items.clone();
    Option<String>: Value::Text(text) => (!text.is_empty()).then(|| text.clone());
    Option<Secret>: Value::Text(text) => (!text.is_empty()).then(|| Secret::new(text.clone()));
    Option<Url>: Value::Url(url) => (!url.is_empty()).then(|| Url::new(url.clone()));
    Store: Value::Url(url) => if url == "sqlite" { Self::Sqlite } else { Self::Postgres(Url::new(url.clone())) };
    Algorithm: Value::Text(name) => match name.as_str() {
        "HS256" => Self::Hs256,
        "RS256" => Self::Rs256,
        "EdDSA" => Self::EdDsa,
        _ => Self::Auto,
    };
    ResultBackend: Value::Text(name) => Self::parse(name).unwrap_or(Self::Store);
    TimeoutStatus: Value::Text(text) => if text == "404" { Self::NotFound } else { Self::GatewayTimeout };
    UnknownFields: Value::Text(text) => if text == "warn" { Self::Warn } else { Self::Refuse };
    Subscription: Value::Text(text) => if text == "new" { Self::New } else { Self::All };
    LogFormat: Value::Text(format) => if format == "json" { Self::Json } else { Self::Text };
}
