//! Administration of queues and groups: requests and results.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    options::{OptionChanges, Options},
    seal::Fingerprint,
};

/// What a caller changes about a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueChange {
    pub queue: String,
    pub namespace: Option<String>,
    pub task: Option<String>,
    pub options: OptionChanges,
}

/// A queue after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedQueue {
    pub configured: ConfigureResult,
    pub options: Options,
    /// The options that callers gave.
    pub given: Map<String, Value>,
    /// The key that was made, because the change was the first to ask for encryption.
    pub made_key: Option<Fingerprint>,
}

/// A queue's new options.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigureRequest {
    pub queue: String,
    /// By default what the queue has, or the part of its name before the first dot.
    pub namespace: Option<String>,
    /// By default what the queue has, or the part of its name behind the first dot.
    pub task: Option<String>,
    pub options: Options,
    /// The options that callers gave, for lists: the others have the server's defaults.
    pub given: Map<String, Value>,
    /// The given options that these were made of. If the queue has others, nothing is changed.
    pub made_of: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigureResult {
    pub queue_id: Uuid,
    pub namespace: String,
    pub task: String,
    /// Delayed messages may be due by the new options, or pops by another namespace or task may find
    /// the queue.
    pub may_be_ready: bool,
}

/// Which cursors: those of a group, in all queues, in one, or in one partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupScope {
    pub group: String,
    pub queue: Option<String>,
    pub partition: Option<String>,
}

/// Where a group continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    End,
    /// With messages of this time (microseconds since 1970) or later.
    At(i64),
}

/// What is paused, on all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseModes {
    pub push_paused: bool,
    pub pop_paused: bool,
}

/// What one sweep removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    pub messages: u64,
    /// There may be more to remove at once.
    pub is_more: bool,
    /// By queue, without the messages of deleted queues.
    pub queues: Vec<SweptQueue>,
}

/// Messages that one sweep removed from one queue, by the option that they were removed for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweptQueue {
    pub queue: String,
    /// `retentionSeconds`.
    pub retained: i64,
    /// `completedRetentionSeconds`.
    pub completed: i64,
    /// `ttl` or `maxWaitTimeSeconds`.
    pub evicted: i64,
}

/// The default namespace and task of a queue: the parts before and after the first dot of its name.
#[must_use]
pub fn parts_of_name(queue: &str) -> (&str, &str) {
    queue.split_once('.').unwrap_or((queue, ""))
}
