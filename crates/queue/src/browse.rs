//! What people see of queues, groups and messages.

use uuid::Uuid;

pub use crate::store::browse::{
    Address, Browse,
    messages::Found,
    parked::Held,
    queues::{Overview, QueueFilter, Spread},
    tallies::Span,
    traces::MAX_NAMES,
    vitals::{Gauge, NodeStep},
};
use crate::{message::Message, topic::QueueName};

/// The group of those who consume without naming one.
pub const QUEUE_MODE: &str = "__QUEUE_MODE__";

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: i64,
    pub offset: i64,
}

/// A part of a list, and how long the whole is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paged<T> {
    pub rows: Vec<T>,
    pub total: i64,
}

/// Where messages stand: for queue mode or, without it, for the group that is furthest behind.
/// Each message counts once; deleted ones do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub total: i64,
    pub pending: i64,
    pub processing: i64,
    pub completed: i64,
    /// Dead letters of all groups.
    pub dead_letter: i64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.total += other.total;
        self.pending += other.pending;
        self.processing += other.processing;
        self.completed += other.completed;
        self.dead_letter += other.dead_letter;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    pub number: i64,
    pub id: Uuid,
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub priority: i64,
    /// What was configured, as JSON. How long a lease lasts is said by `lease_ms`.
    pub options: String,
    /// `None`: the server's default.
    pub lease_ms: Option<i64>,
    pub created_us: i64,
    pub partitions: i64,
    pub counts: Counts,
    pub consumed: i64,
    pub leased_partitions: i64,
    /// When the oldest message came that is not consumed.
    pub oldest_us: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRow {
    pub number: i64,
    pub queue: String,
    pub name: String,
    pub created_us: i64,
    /// When the newest message came; 0: none ever did.
    pub last_us: i64,
    pub counts: Counts,
    pub consumed: i64,
    pub oldest_us: Option<i64>,
}

/// A group in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    pub name: String,
    pub queue: String,
    pub mode: String,
    pub begin_us: Option<i64>,
    pub created_us: i64,
    pub cursors: i64,
    pub lag: i64,
    pub lagging: i64,
    pub leased: i64,
    pub oldest_us: Option<i64>,
}

/// A group in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    pub group: String,
    pub queue: String,
    pub partition: String,
    pub partition_number: i64,
    pub position: i64,
    pub lag: i64,
    /// While its batch is in somebody's hands.
    pub lease: Option<Lease>,
    pub consumed: i64,
    pub oldest_us: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: Uuid,
    pub to: i64,
    pub until_us: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageStatus {
    Pending,
    Processing,
    Completed,
    DeadLetter,
}

impl MessageStatus {
    pub const ALL: [Self; 4] = [
        Self::Pending,
        Self::Processing,
        Self::Completed,
        Self::DeadLetter,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::DeadLetter => "dead_letter",
        }
    }
}

/// Which messages. Times are microseconds since 1970; `to` is not within.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageFilter {
    pub queue: Option<String>,
    pub partition: Option<String>,
    pub namespace: Option<String>,
    pub task: Option<String>,
    pub group: Option<String>,
    pub from_us: Option<i64>,
    pub to_us: Option<i64>,
}

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    pub queue: String,
    pub namespace: String,
    pub task: String,
    pub priority: i64,
    pub partition: String,
    pub partition_number: i64,
}

impl Home {
    #[must_use]
    pub fn queue_name(&self) -> QueueName<'_> {
        QueueName {
            name: &self.queue,
            namespace: &self.namespace,
            task: &self.task,
        }
    }
}

/// A message as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub home: Home,
    pub message: Message,
    pub status: MessageStatus,
    /// The first position of its segment.
    pub segment: i64,
    /// The groups that read its partition.
    pub readers: std::sync::Arc<Vec<Reader>>,
    /// It was sealed before it was opened to be shown.
    pub was_sealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub number: i64,
    pub home: Home,
    pub group: String,
    pub failures: i64,
    pub error: Option<String>,
    pub failed_us: i64,
    /// Its transaction id is the one that it was acknowledged with.
    pub message: Message,
    /// The message as it is stored.
    pub entry: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTrace {
    pub id: Uuid,
    pub partition: i64,
    pub transaction_id: String,
    pub group: String,
    pub event: String,
    /// JSON.
    pub data: String,
    pub worker: String,
    pub names: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub id: Uuid,
    pub partition: i64,
    pub transaction_id: String,
    pub group: String,
    pub event: String,
    pub data: String,
    pub worker: String,
    pub created_us: i64,
    pub names: Vec<String>,
    /// Queue and partition, unless they are gone.
    pub queue: Option<String>,
    pub partition_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceName {
    pub name: String,
    pub traces: i64,
    pub messages: i64,
    pub last_us: i64,
}

/// What became of a dead letter that was to be appended again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retried {
    /// Appended again, with this id and transaction id.
    Done { id: Uuid, transaction_id: String },
    /// There is no such letter any more.
    Gone,
    /// The group that had it is not known any more.
    NoGroup,
}
