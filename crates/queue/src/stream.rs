//! Stream queries: what the streaming SDK keeps between two cycles.

use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub name: String,
    pub source_queue: String,
    pub sink_queue: Option<String>,
    /// Of the chain of operators: state made by another chain does not fit.
    pub config_hash: String,
    /// Begin anew if it does not fit.
    pub reset: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    pub id: Uuid,
    /// It was not known before.
    pub is_fresh: bool,
    /// Its state was wiped.
    pub is_reset: bool,
    /// Another chain of operators has this name, and nothing was done.
    pub is_mismatch: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateQuery {
    pub stream: Uuid,
    pub partition: i64,
    /// These keys; none: all that fit the rest.
    pub keys: Vec<String>,
    pub prefix: Option<String>,
    /// Only values whose `ripeAt`-style number is not later, in milliseconds since 1970.
    pub ripe_at_or_before: Option<i64>,
    pub limit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    pub key: String,
    /// JSON text.
    pub value: String,
    pub updated_us: i64,
}
