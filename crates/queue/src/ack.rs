//! An acknowledgement: what a consumer says of a message, and what came of it.

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::topic;

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

    /// Its name in the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Retry => "retry",
            Self::DeadLetter => "dlq",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub partition_id: Uuid,
    pub group: String,
    pub transaction_id: String,
    /// With a lease the acknowledgement is fenced by it; without one it only moves forward.
    /// A text that cannot be a lease is the nil UUID, which never is one.
    pub lease: Option<Uuid>,
    pub status: Status,
    pub error: Option<String>,
}

/// What became of an acknowledgement. None of these is an error of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done {
        lease_released: bool,
        dead: bool,
    },
    /// It was completed before; nothing changed.
    AlreadyDone,
    /// The lease is not the caller's (any more); nothing changed.
    LeaseLost,
    /// No such message in the partition, or nothing was ever claimed by the group.
    Unknown,
    /// The group has completed it already, so it cannot fail any more.
    Passed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acked {
    pub outcome: Outcome,
    /// The group can claim from this queue's partition (again).
    pub ready: Option<(String, String)>,
}

impl Acked {
    #[must_use]
    pub fn wake(&self, group: &str) -> Option<Wake> {
        let (queue, partition) = self.ready.as_ref()?;
        Some(topic::ready(queue, partition, Some(group), 1))
    }
}
