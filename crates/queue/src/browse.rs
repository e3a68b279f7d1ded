//! What people read of queues, groups and messages.

use std::sync::Arc;

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    apply::position_in_server_id,
    id,
    message::{Message, NewMessage},
    segment::SegmentBody,
    topic::{self, QueueName},
};

/// The group of all consumers that name none.
pub const QUEUE_MODE: &str = "__QUEUE_MODE__";

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: i64,
    pub offset: i64,
}

impl Page {
    #[must_use]
    pub fn first(limit: i64) -> Self {
        Self { limit, offset: 0 }
    }
}

/// A part of a list, and how long the whole is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage<T> {
    pub rows: Vec<T>,
    pub total: i64,
}

impl<T> Default for ListPage<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            total: 0,
        }
    }
}

/// What a list of queues is filtered by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFilter {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub task: Option<String>,
}

/// How many messages are in each status: for queue mode or, without it, for the group that is
/// furthest behind. Each message counts once; deleted ones do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    pub total: i64,
    pub pending: i64,
    pub processing: i64,
    pub completed: i64,
    /// Dead letters of all groups.
    pub dead_letter: i64,
}

impl MessageCounts {
    pub fn add(&mut self, other: Self) {
        self.total += other.total;
        self.pending += other.pending;
        self.processing += other.processing;
        self.completed += other.completed;
        self.dead_letter += other.dead_letter;
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueRow {
    pub number: i64,
    pub id: Uuid,
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub priority: i64,
    /// What was configured, as JSON. The length of a lease is in `lease_ms` instead.
    pub options: String,
    /// `None`: the server's default.
    pub lease_ms: Option<i64>,
    pub created_us: i64,
    pub partitions: i64,
    pub counts: MessageCounts,
    pub consumed: i64,
    /// When the oldest unconsumed message came.
    pub oldest_us: Option<i64>,
}

/// The leases of all groups in some queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseCounts {
    pub leases: i64,
    /// Partitions that are leased to some group.
    pub partitions: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionRow {
    pub number: i64,
    pub queue: String,
    pub name: String,
    pub created_us: i64,
    /// When the newest message came; 0: none ever did.
    pub last_us: i64,
    pub counts: MessageCounts,
    pub consumed: i64,
    pub oldest_us: Option<i64>,
}

/// A group in a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    pub name: String,
    pub queue: String,
    pub namespace: String,
    pub task: String,
    pub mode: String,
    pub begin_us: Option<i64>,
    pub created_us: i64,
    pub cursors: i64,
    pub lag: i64,
    pub lagging: i64,
    /// Partitions of which messages are leased.
    pub leased: i64,
    /// Leases, of which one may be on several partitions.
    pub leases: i64,
    /// Pops of the group that this node holds and that wait for the queue, for partitions of it, or
    /// for its namespace or task.
    pub held_pops: i64,
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
    /// While a batch of it is leased.
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
    pub const NAMES: [(&'static str, Self); 4] = [
        ("pending", Self::Pending),
        ("processing", Self::Processing),
        ("completed", Self::Completed),
        ("dead_letter", Self::DeadLetter),
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        let mut names = Self::NAMES.into_iter();
        let name = names.find(|(_, status)| *status == self);
        name.expect("each status has a name").0
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

/// The queue and partition of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLocation {
    pub queue: String,
    pub namespace: String,
    pub task: String,
    pub priority: i64,
    pub partition: String,
    pub partition_number: i64,
}

impl MessageLocation {
    #[must_use]
    pub fn queue_name(&self) -> QueueName<'_> {
        QueueName {
            name: &self.queue,
            namespace: &self.namespace,
            task: &self.task,
        }
    }
}

/// A message in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMessage {
    pub location: MessageLocation,
    pub message: Message,
    pub status: MessageStatus,
    /// The first position of its segment.
    pub segment: i64,
    /// The groups that read its partition.
    pub readers: Arc<Vec<Reader>>,
    /// It was sealed before it was opened to be shown.
    pub was_sealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub number: i64,
    pub location: MessageLocation,
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

/// What became of the retry of a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryOutcome {
    /// Appended again, with this id and transaction id.
    Done { id: Uuid, transaction_id: String },
    /// The dead letter is not there any more.
    Gone,
    /// Its group was deleted.
    NoGroup,
}

/// A message with its dead letters.
#[derive(Debug)]
pub struct MessageDetails {
    pub message: ListedMessage,
    pub letters: Vec<DeadLetter>,
}

/// A message by its partition's number and its transaction id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageAddress {
    pub partition: i64,
    pub transaction_id: String,
}

impl MessageAddress {
    /// The message's position, if its id is one that the server made.
    #[must_use]
    pub fn position(&self) -> Option<i64> {
        position_in_server_id(self.partition, &self.transaction_id)
    }

    #[must_use]
    pub fn hash(&self) -> Uuid {
        id::hash(&self.transaction_id)
    }
}

/// A dead letter to be appended again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterRetry {
    pub letter: i64,
    pub partition: i64,
    /// The transaction id that the producer gave.
    pub transaction_id: Option<String>,
    /// The message's text with that transaction id, and with none.
    pub entry_with_id: String,
    pub entry_without_id: String,
    /// Wakes the group's waiting pops.
    pub wake: Wake,
}

impl DeadLetterRetry {
    /// The outcome for a message that was appended at `position`, with the producer's transaction
    /// id if `keeps_id`.
    #[must_use]
    pub fn done(&self, created_us: i64, position: i64, keeps_id: bool) -> RetryOutcome {
        let id = id::message(created_us, self.partition, position);
        let kept = self.transaction_id.clone().filter(|_| keeps_id);
        RetryOutcome::Done {
            id,
            transaction_id: kept.unwrap_or_else(|| id.to_string()),
        }
    }
}

impl DeadLetter {
    #[must_use]
    pub fn retry(&self) -> DeadLetterRetry {
        let message = &self.message;
        let is_given = message.transaction_id != message.id.to_string();
        let transaction_id = is_given.then(|| message.transaction_id.clone());
        let entry = |transaction_id: Option<String>| {
            let mut body = SegmentBody::default();
            body.add(&NewMessage {
                queue: String::new(),
                partition: String::new(),
                transaction_id,
                trace_id: message.trace_id,
                payload: message.payload.as_str().into(),
                producer_sub: message.producer_sub.clone(),
                is_sealed: message.is_sealed,
            });
            let text = body.text();
            text[1..text.len() - 1].to_owned()
        };
        DeadLetterRetry {
            letter: self.number,
            partition: self.location.partition_number,
            entry_with_id: entry(transaction_id.clone()),
            entry_without_id: entry(None),
            transaction_id,
            wake: topic::wake_of_partition(
                self.location.queue_name(),
                &self.location.partition,
                Some(&self.group),
                1,
            ),
        }
    }
}

/// How many of everything there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    pub queues: i64,
    pub namespaces: i64,
    pub tasks: i64,
    pub partitions: i64,
    pub counts: MessageCounts,
    pub now_us: i64,
    /// Over the partitions: how many messages are pending, and how long the oldest has waited.
    pub offset: Distribution,
    pub wait_us: Distribution,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    pub least: i64,
    pub most: i64,
    pub mean: i64,
    pub median: i64,
}

/// A time in steps of `bucket_us`; `to_us` is not within.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from_us: i64,
    pub to_us: i64,
    pub bucket_us: i64,
}

/// The pops of a queue that were held in a time step: on one node, or on all nodes together.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldPopsAverage {
    pub bucket_us: i64,
    pub queue: String,
    /// Host and port.
    pub node: Option<(String, i64)>,
    /// On average over the minutes that had any.
    pub held: f64,
}

/// A number over the minutes of a time step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge {
    pub average: f64,
    pub least: i64,
    pub most: i64,
    /// In the last minute.
    pub last: i64,
}

/// The statistics of a node in a time step. `None`: the node's system does not tell the number.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatsBucket {
    pub bucket_us: i64,
    pub hostname: String,
    pub port: i64,
    /// Minutes that the node wrote.
    pub minutes: i64,
    pub last_us: i64,
    /// Pushed and acknowledged.
    pub messages: i64,
    /// Hundredths of a percent of all processors that the node may use.
    pub cpu_user: Option<Gauge>,
    pub cpu_system: Option<Gauge>,
    pub resident_bytes: Option<Gauge>,
    pub virtual_bytes: Option<Gauge>,
    pub connections: Option<Gauge>,
    pub busy_connections: Option<Gauge>,
    pub held: Option<Gauge>,
    pub late_us: Option<Gauge>,
    pub max_late_us: Option<Gauge>,
}
