//! What is counted per queue and minute.

pub const MINUTE_US: i64 = 60_000_000;

/// What one queue did in one minute, or the server as a whole (then without a name).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// When the minute began, in microseconds since 1970.
    pub minute_us: i64,
    /// No queue's name is empty: an empty one is the server's.
    pub queue: String,
    /// By what the store finds the queue if the node does not know its name.
    pub partition: Option<i64>,
    pub pushed: i64,
    pub popped: i64,
    pub completed: i64,
    pub failed: i64,
    pub dead: i64,
    /// How long what was popped had waited, added up and at most.
    pub lag_us: i64,
    pub max_lag_us: i64,
    /// Calls, whatever came of them. What is pushed and acknowledged in a transaction is none of
    /// these.
    pub push_requests: i64,
    pub pop_requests: i64,
    pub ack_requests: i64,
    pub transactions: i64,
    /// Pops that ended without a message.
    pub empty_pops: i64,
    pub partitions_made: i64,
    pub partitions_deleted: i64,
    /// Messages that were swept: by age, because everyone had consumed them, because nobody had
    /// popped them in time.
    pub retained_out: i64,
    pub completed_out: i64,
    pub evicted_out: i64,
    /// Slices of sweeping that removed something.
    pub sweeps: i64,
    /// Operations that the store failed; of the server as a whole only.
    pub store_failures: i64,
    /// Partitions at the end of the minute; read only.
    pub partitions: Option<i64>,
}

/// A number of a [`Count`] that adds up, under the name of its column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub get: fn(&Count) -> i64,
    pub field: fn(&mut Count) -> &mut i64,
    /// The server as a whole has its own number: a call may concern several queues or none.
    pub is_servers: bool,
}

macro_rules! columns {
    ($is_servers:literal: $($name:ident),+) => {
        [$(Column {
            name: stringify!($name),
            get: |count| count.$name,
            field: |count| &mut count.$name,
            is_servers: $is_servers,
        }),+]
    };
}

pub const OF_QUEUES: [Column; 12] = columns![
    false: pushed, popped, completed, failed, dead, lag_us, partitions_made, partitions_deleted,
    retained_out, completed_out, evicted_out, sweeps
];
pub const OF_SERVER: [Column; 6] = columns![
    true: push_requests, pop_requests, ack_requests, transactions, empty_pops, store_failures
];

/// All that add up, in the order in which they are written and read.
pub fn columns() -> impl Iterator<Item = Column> {
    OF_QUEUES.into_iter().chain(OF_SERVER)
}

impl Count {
    pub fn add(&mut self, other: &Self) {
        for column in columns() {
            let sum = (column.field)(self);
            *sum = sum.saturating_add((column.get)(other));
        }
        self.max_lag_us = self.max_lag_us.max(other.max_lag_us);
    }

    /// Messages that were taken in or done with.
    #[must_use]
    pub fn processed(&self) -> i64 {
        self.pushed + self.completed + self.failed
    }
}
