//! The history of producers and consumers: every call with its begin, its end and its answer.
//!
//! Times are microseconds of the run's own clock. A call took effect at some moment between its
//! begin and its end, if at all.

use std::time::Duration;

pub(super) type Time = u64;
/// The number that a message carries, unique in the run.
pub(super) type MessageNumber = u64;

pub(super) const NEVER: Time = Time::MAX;

#[derive(Debug, Default)]
pub(super) struct History {
    /// The names of all partitions of all queues. Elsewhere a partition is its index here.
    pub(super) partitions: Vec<String>,
    pub(super) groups: Vec<Group>,
    pub(super) lease: Duration,
    pub(super) pushes: Vec<Push>,
    pub(super) repeats: Vec<Repeat>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) acks: Vec<Ack>,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) name: String,
    /// Messages are acknowledged when they are popped, and so delivered at most once.
    pub(super) auto_ack: bool,
}

/// One push, with all its attempts if it was sent again under the same transaction ids.
#[derive(Debug, Clone)]
pub(super) struct Push {
    pub(super) begin: Time,
    pub(super) end: Time,
    /// In the order of the request.
    pub(super) items: Vec<(usize, MessageNumber)>,
    pub(super) outcome: PushOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PushOutcome {
    /// Acknowledged: never to be lost.
    Stored,
    /// The server said that nothing was done.
    Refused,
    /// There was no answer, or an answer that leaves the outcome open.
    Unknown,
}

/// An item that was pushed once more after its push had been acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Repeat {
    pub(super) partition: usize,
    pub(super) number: MessageNumber,
    pub(super) answered_duplicate: bool,
}

/// The messages of one pop.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) group: usize,
    pub(super) partition: usize,
    pub(super) begin: Time,
    pub(super) end: Time,
    /// Nothing with autoAck.
    pub(super) lease: Option<u128>,
    /// The number and the message's own id.
    pub(super) messages: Vec<(MessageNumber, u128)>,
}

#[derive(Debug, Clone)]
pub(super) struct Ack {
    pub(super) group: usize,
    pub(super) partition: usize,
    pub(super) number: MessageNumber,
    pub(super) lease: u128,
    pub(super) begin: Time,
    pub(super) end: Time,
    pub(super) effect: Effect,
    pub(super) outcome: AckOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Of this message and all before it.
    Completes,
    /// Failed, or to be tried again.
    GivesBack,
    /// Completed in the same call after a failed message, so that it is not completed.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AckOutcome {
    Done {
        /// Whether the lease may have ended with it.
        released: bool,
        /// The message was moved to the dead letters.
        dead: bool,
        /// The message had been completed before.
        noop: bool,
    },
    Refused,
    Unknown,
}

impl History {
    pub(super) fn append(&mut self, mut other: Self) {
        self.pushes.append(&mut other.pushes);
        self.repeats.append(&mut other.repeats);
        self.deliveries.append(&mut other.deliveries);
        self.acks.append(&mut other.acks);
    }
}
