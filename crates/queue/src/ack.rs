//! Acknowledgements and their outcomes.

use uuid::Uuid;

/// What a consumer reports about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckStatus {
    /// Completes the message and all messages before it in the partition.
    Completed,
    /// The message is redelivered, until it has failed more often than the queue's retry limit.
    Failed,
    /// The message is redelivered, and this does not count as a failure.
    Retry,
    /// The message becomes a dead letter at once.
    DeadLetter,
}

impl AckStatus {
    pub const NAMES: [(&'static str, Self); 5] = [
        ("completed", Self::Completed),
        ("success", Self::Completed),
        ("failed", Self::Failed),
        ("retry", Self::Retry),
        ("dlq", Self::DeadLetter),
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The partition's number; -1 for what cannot be one.
    pub partition: i64,
    pub group: String,
    pub transaction_id: String,
    /// With a lease the acknowledgement is fenced by it; without one it only moves forward.
    /// A text that cannot be a lease is the nil UUID, which never is one.
    pub lease: Option<Uuid>,
    pub status: AckStatus,
    pub error: Option<String>,
    /// The lease stays although its whole batch is completed.
    pub keeps_lease: bool,
}

/// The outcome of an acknowledgement. None of these is an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    Done {
        lease_released: bool,
        /// The message became a dead letter.
        dead: bool,
    },
    /// The message was completed before; nothing changed. Outside of a transaction this is also the
    /// outcome if its lease has ended: a repeat of an acknowledgement whose answer was lost.
    AlreadyDone,
    /// The lease is not valid any more or, for an acknowledgement without one, the partition is leased;
    /// nothing changed.
    LeaseLost,
    /// Another acknowledgement of the same batch said that a message failed, is to be retried or is dead.
    /// That released the whole batch: nothing changed, and this message is redelivered.
    BatchReleased,
    /// There is no such message in the partition, or the group has never claimed from it.
    Unknown,
    /// The group has completed the message already, so it cannot fail any more; nothing changed.
    Passed,
}

impl AckOutcome {
    #[must_use]
    pub fn is_success(self) -> bool {
        matches!(self, Self::Done { .. } | Self::AlreadyDone)
    }

    /// Whether the message became a dead letter.
    #[must_use]
    pub fn is_dead(self) -> bool {
        matches!(self, Self::Done { dead: true, .. })
    }

    #[must_use]
    pub fn has_released_lease(self) -> bool {
        let Self::Done { lease_released, .. } = self else {
            return false;
        };
        lease_released
    }
}
