//! A claim: the messages that one `pop` gets, and the lease on their partition.

use std::time::Duration;

use uuid::Uuid;
use wakeline_wake::{Place, Wake};

use crate::{message::Message, topic};

/// What a `pop` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopRequest {
    pub queue: String,
    /// This partition, or any.
    pub partition: Option<String>,
    pub group: String,
    pub batch: u32,
    /// Acknowledged by being handed out: at most once, and no lease.
    pub auto_ack: bool,
}

impl PopRequest {
    /// Where a request like this waits.
    #[must_use]
    pub fn place(&self) -> Place {
        topic::place(&self.queue, self.partition.as_deref(), &self.group)
    }
}

/// What a `pop` found.
#[derive(Debug)]
pub enum Popped {
    Claimed(Claimed),
    /// Nothing now; if the store knows when there may be something, that.
    Empty {
        again: Option<Duration>,
    },
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    pub queue: String,
    pub group: String,
    pub partition: String,
    pub partition_id: Uuid,
    /// `None` with autoAck.
    pub lease: Option<Uuid>,
    /// How long the lease lasts.
    pub time: Option<Duration>,
    /// Where the claim begins and ends: what fences handing it back.
    pub first: i64,
    pub end: i64,
    pub messages: Vec<Message>,
    /// With autoAck: how many more the group can claim from this partition at once.
    pub remaining: u32,
}

impl Claimed {
    /// Where others of the group wait for what is claimed here.
    #[must_use]
    pub fn places(&self) -> [Place; 2] {
        [None, Some(&*self.partition)]
            .map(|partition| topic::place(&self.queue, partition, &self.group))
    }

    /// Who else can be served from the same partition.
    #[must_use]
    pub fn ready(&self) -> Option<Wake> {
        (self.remaining > 0).then(|| {
            topic::ready(
                &self.queue,
                &self.partition,
                Some(&self.group),
                self.remaining,
            )
        })
    }
}
