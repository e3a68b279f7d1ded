//! A claim: the messages that one `pop` gets, and the lease on their partitions.

use std::time::Duration;

use uuid::Uuid;
use wakeline_wake::{WaitKey, Wake};

use crate::{id, message::Message, topic};

/// Where a `pop` looks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A queue: one of its partitions, or any.
    Queue {
        queue: String,
        partition: Option<String>,
    },
    /// Whichever queue has this namespace or task, or both.
    Matching {
        namespace: Option<String>,
        task: Option<String>,
    },
}

/// Where a group begins that is seen for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// With everything that is there.
    All,
    /// With what comes from now on.
    New,
    /// With what came at this time (microseconds since 1970) or later.
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

/// What a `pop` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopRequest {
    pub source: Source,
    pub group: String,
    pub start: Start,
    /// Messages at most, of all partitions together.
    pub batch: u32,
    /// Partitions at most.
    pub partitions: u32,
    /// Acknowledged by being handed out: at most once, and no lease.
    pub auto_ack: bool,
}

impl PopRequest {
    /// Where a request like this waits.
    #[must_use]
    pub fn key(&self) -> WaitKey {
        topic::key(&self.source, &self.group)
    }
}

/// What a `pop` found.
#[derive(Debug)]
pub enum Popped {
    Claimed(Claimed),
    /// Nothing now; if the store knows when there may be something, that.
    Empty {
        recheck_after: Option<Duration>,
    },
}

/// See the module. All partitions are of one queue and under one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
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
    pub parts: Vec<Part>,
}

/// What is claimed of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub partition: String,
    pub number: i64,
    /// Where the cursor stood and where the claim ends: what fences handing it back.
    pub first: i64,
    pub end: i64,
    pub messages: Vec<Message>,
    /// With autoAck: how many more the group can claim from this partition at once.
    pub remaining: u32,
}

impl Part {
    #[must_use]
    pub fn partition_id(&self) -> Uuid {
        id::partition(self.number)
    }
}

impl Claimed {
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.parts.iter().flat_map(|part| &part.messages)
    }

    /// Where others of the group wait for what is claimed here.
    #[must_use]
    pub fn keys(&self) -> Vec<WaitKey> {
        let queue = topic::QueueName {
            name: &self.queue,
            namespace: &self.namespace,
            task: &self.task,
        };
        let mut keys = topic::keys_of_queue(queue, &self.group);
        keys.extend(self.parts.iter().map(|part| {
            let source = Source::Queue {
                queue: self.queue.clone(),
                partition: Some(part.partition.clone()),
            };
            topic::key(&source, &self.group)
        }));
        keys
    }

    /// Who else can be served from the same partitions.
    #[must_use]
    pub fn ready(&self) -> Vec<Wake> {
        self.parts
            .iter()
            .filter(|part| part.remaining > 0)
            .map(|part| self.wake(part, part.remaining))
            .collect()
    }

    /// `count` claims can be had from the partition again.
    #[must_use]
    pub fn wake(&self, part: &Part, count: u32) -> Wake {
        let queue = topic::QueueName {
            name: &self.queue,
            namespace: &self.namespace,
            task: &self.task,
        };
        topic::ready(queue, &part.partition, Some(&self.group), count)
    }
}
