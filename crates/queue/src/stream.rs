//! Stream queries: what the streaming SDK keeps between two cycles.

use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRegistration {
    pub name: String,
    pub source_queue: String,
    pub sink_queue: Option<String>,
    /// The hash of the chain of operators: the state of another chain does not fit.
    pub config_hash: String,
    /// Delete the state of another chain.
    pub reset: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterResult {
    pub id: Uuid,
    /// The query was not registered before.
    pub is_new: bool,
    /// Its state was wiped.
    pub is_reset: bool,
    /// Another chain of operators has this name, and nothing was done.
    pub is_mismatch: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateQuery {
    pub stream: Uuid,
    pub partition: i64,
    /// These keys; if empty, all keys that fit the rest.
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
