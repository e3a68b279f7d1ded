//! An acknowledgement: what a consumer says of a message, and what came of it.

use uuid::Uuid;

/// What a consumer says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done, and with it all before it in the partition.
    Completed,
    /// Comes again, until it has failed more often than the queue's retry limit; then it is dead.
    Failed,
    /// Comes again, and this does not count.
    Retry,
    /// Dead at once.
    DeadLetter,
}

impl Status {
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
    pub status: Status,
    pub error: Option<String>,
    /// The lease goes on although all of it is completed.
    pub keeps_lease: bool,
}

/// What became of an acknowledgement. None of these is an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done {
        lease_released: bool,
        /// It went to the dead letters.
        dead: bool,
    },
    /// It was completed before; nothing changed.
    AlreadyDone,
    /// The lease is not the caller's (any more), or, without one, is somebody else's; nothing
    /// changed.
    LeaseLost,
    /// No such message in the partition, or nothing was ever claimed by the group.
    Unknown,
    /// The group has completed it already, so it cannot fail any more.
    Passed,
}

impl Outcome {
    #[must_use]
    pub fn is_success(self) -> bool {
        matches!(self, Self::Done { .. } | Self::AlreadyDone)
    }
}
