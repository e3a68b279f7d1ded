//! Queues and groups as things: configured, moved, deleted, swept.

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::options::Options;

/// What `configure` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOptions {
    pub queue: String,
    /// By default what the queue has, or the part of its name before the first dot.
    pub namespace: Option<String>,
    /// By default what the queue has, or the part of its name behind the first dot.
    pub task: Option<String>,
    pub options: Options,
    /// The options that the caller gave, to be shown: the others are at the server's defaults.
    pub given: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub queue_id: Uuid,
    pub namespace: String,
    pub task: String,
    /// What was held back may be due by the new options, or pops by another namespace or task may
    /// find the queue.
    pub may_be_ready: bool,
}

/// Which cursors: those of a group, in all queues, in one, or in one partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupScope {
    pub group: String,
    pub queue: Option<String>,
    pub partition: Option<String>,
}

/// Where a group goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    End,
    /// With what came at this time (microseconds since 1970) or later.
    At(i64),
}

/// What holds for all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    pub push_paused: bool,
    pub pop_paused: bool,
}

/// What a slice of sweeping removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub messages: u64,
    /// There may be more to remove at once.
    pub is_more: bool,
    /// Whose messages they were, without those of deleted queues.
    pub queues: Vec<SweptQueue>,
}

/// Messages that a slice of sweeping removed from one queue, by the rule that they fell under.
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

/// Namespace and task of a queue that was not told: around the first dot of its name.
#[must_use]
pub fn parts_of_name(queue: &str) -> (&str, &str) {
    queue.split_once('.').unwrap_or((queue, ""))
}
