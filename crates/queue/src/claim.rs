//! A claim: the messages that one pop gets, and the lease on their partitions.

use std::time::Duration;

use uuid::Uuid;
use wakeline_wake::{WaitKey, Wake};

use crate::{deliveries::Deliveries, id, message::Message, topic};

/// What a pop claims from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A queue: one of its partitions, or any.
    Queue {
        queue: String,
        partition: Option<String>,
    },
    /// One of the queues that have this namespace or task, or both.
    Matching {
        namespace: Option<String>,
        task: Option<String>,
    },
}

/// Where a new group starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// With all messages.
    All,
    /// With messages that come from now on.
    New,
    /// With messages of this time (microseconds since 1970) or later.
    At(i64),
}

impl Start {
    #[must_use]
    pub fn mode(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::New => "new",
            Self::At(_) => "timestamp",
        }
    }
}

/// The request of a pop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopRequest {
    pub source: Source,
    pub group: String,
    pub start: Start,
    /// Messages at most, of all partitions together.
    pub batch: u32,
    /// Partitions at most.
    pub partitions: u32,
    /// Acknowledge the messages as they are handed out: at most once, and no lease.
    pub auto_ack: bool,
    /// How long the lease of this pop lasts; by default as the queue says.
    pub lease_time: Option<Duration>,
}

impl PopRequest {
    /// The wait key of the pop.
    #[must_use]
    pub fn key(&self) -> WaitKey {
        topic::key(&self.source, &self.group)
    }
}

/// The outcome of a pop.
#[derive(Debug)]
pub enum PopOutcome {
    Claimed(Claim),
    /// No message now, and when there may be one, if the store knows.
    Empty {
        recheck_after: Option<Duration>,
    },
}

/// The messages that one pop gets. All partitions are of one queue and under one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub queue: String,
    pub namespace: String,
    pub task: String,
    pub group: String,
    pub group_number: i64,
    /// `None` with autoAck.
    pub lease: Option<Uuid>,
    /// How long the lease lasts.
    pub time: Option<Duration>,
    /// At least one, each with at least one message.
    pub parts: Vec<ClaimedPartition>,
}

/// What is claimed of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedPartition {
    pub partition: String,
    pub number: i64,
    /// Where the cursor was and where the claim ends: these fence the release of the claim.
    pub first: i64,
    pub end: i64,
    pub messages: Vec<Message>,
    /// Earlier deliveries to the group.
    pub deliveries: Deliveries,
    /// With autoAck: how many more messages the group can claim from this partition at once.
    pub remaining: u32,
}

impl ClaimedPartition {
    #[must_use]
    pub fn partition_id(&self) -> Uuid {
        id::partition(self.number)
    }
}

impl Claim {
    fn queue_name(&self) -> topic::QueueName<'_> {
        topic::QueueName {
            name: &self.queue,
            namespace: &self.namespace,
            task: &self.task,
        }
    }

    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.parts.iter().flat_map(|part| &part.messages)
    }

    /// The keys where other pops of the group wait for the claimed partitions.
    #[must_use]
    pub fn keys(&self) -> Vec<WaitKey> {
        let mut keys = topic::keys_of_queue(self.queue_name(), &self.group);
        keys.extend(self.parts.iter().map(|part| {
            let source = Source::Queue {
                queue: self.queue.clone(),
                partition: Some(part.partition.clone()),
            };
            topic::key(&source, &self.group)
        }));
        keys
    }

    /// Wakes for other pops that can be served from the same partitions.
    #[must_use]
    pub fn wakes(&self) -> Vec<Wake> {
        self.parts
            .iter()
            .filter(|part| part.remaining > 0)
            .map(|part| self.wake(part, part.remaining))
            .collect()
    }

    /// A wake: `count` messages of the partition can be claimed again.
    #[must_use]
    pub fn wake(&self, part: &ClaimedPartition, count: u32) -> Wake {
        topic::wake_of_partition(self.queue_name(), &part.partition, Some(&self.group), count)
    }
}
