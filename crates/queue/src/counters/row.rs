//! A row of counters.

pub const MINUTE_US: i64 = 60_000_000;

/// The counters of a queue in a minute, or of the server as a whole (then without a name).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterRow {
    /// When the minute began, in microseconds since 1970.
    pub minute_us: i64,
    /// An empty name is the server's: no queue's name is empty.
    pub queue: String,
    /// Finds the queue if the node does not know its name.
    pub partition: Option<i64>,
    pub pushed: i64,
    pub popped: i64,
    pub completed: i64,
    pub failed: i64,
    pub dead: i64,
    /// How long popped messages had waited, added up and at most.
    pub lag_us: i64,
    pub max_lag_us: i64,
    /// Calls, whatever their outcome. A transaction is neither a push nor an acknowledgement.
    pub push_requests: i64,
    pub pop_requests: i64,
    pub ack_requests: i64,
    pub transactions: i64,
    /// Pops that ended without a message.
    pub empty_pops: i64,
    pub partitions_made: i64,
    pub partitions_deleted: i64,
    /// Swept messages: too old, consumed by every group, not popped in time.
    pub retained_out: i64,
    pub completed_out: i64,
    pub evicted_out: i64,
    /// Sweeps that removed messages.
    pub sweeps: i64,
    /// Database operations that failed; of the server as a whole only.
    pub store_failures: i64,
    /// Partitions at the end of the minute; read only.
    pub partitions: Option<i64>,
}

/// A number of a [`CounterRow`] that adds up, under the name of its column.
#[derive(Clone, Copy, Debug)]
pub struct CounterColumn {
    pub name: &'static str,
    pub get: fn(&CounterRow) -> i64,
    pub field: fn(&mut CounterRow) -> &mut i64,
    /// The server as a whole has a number of its own: a call may concern several queues or none.
    pub is_servers: bool,
}

macro_rules! columns {
    ($is_servers:literal: $($name:ident),+) => {
        [$(CounterColumn {
            name: stringify!($name),
            get: |count| count.$name,
            field: |count| &mut count.$name,
            is_servers: $is_servers,
        }),+]
    };
}

pub const QUEUE_COLUMNS: [CounterColumn; 12] = columns![
    false: pushed, popped, completed, failed, dead, lag_us, partitions_made, partitions_deleted,
    retained_out, completed_out, evicted_out, sweeps
];
pub const SERVER_COLUMNS: [CounterColumn; 6] = columns![
    true: push_requests, pop_requests, ack_requests, transactions, empty_pops, store_failures
];

/// All numbers that add up, in the order in which they are written and read.
pub fn columns() -> impl Iterator<Item = CounterColumn> {
    QUEUE_COLUMNS.into_iter().chain(SERVER_COLUMNS)
}

impl CounterRow {
    pub fn add(&mut self, other: &Self) {
        for column in columns() {
            let sum = (column.field)(self);
            *sum = sum.saturating_add((column.get)(other));
        }
        self.max_lag_us = self.max_lag_us.max(other.max_lag_us);
    }

    /// Messages that were pushed or acknowledged.
    #[must_use]
    pub fn processed(&self) -> i64 {
        self.pushed + self.completed + self.failed
    }
}
