//! A write batch: pushes and acknowledgements of one call. A push, an acknowledgement, a transaction
//! and a stream's cycle are all write batches.

use std::sync::Arc;

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    ack::{Ack, AckOutcome},
    message::{NewMessage, PushReceipt, PushRefusal},
    seal::Fingerprint,
};

#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    pub pushes: Vec<NewMessage>,
    pub acks: Vec<Ack>,
    /// All or nothing: a failed acknowledgement or a refused message undoes the rest. Otherwise each is
    /// done or refused by itself.
    pub is_whole: bool,
    /// Leases that must be valid, or nothing is done.
    pub required: Vec<Uuid>,
    pub state: Option<StateChange>,
    /// The server's keys. Messages that are sealed with another key than the store's are refused.
    pub keys: Arc<[Fingerprint]>,
}

impl WriteBatch {
    /// Messages, each stored or refused by itself.
    #[must_use]
    pub fn of_pushes(pushes: Vec<NewMessage>) -> Self {
        Self {
            pushes,
            ..Self::default()
        }
    }

    /// Acknowledgements, each done or refused by itself.
    #[must_use]
    pub fn of_acks(acks: Vec<Ack>) -> Self {
        Self {
            acks,
            ..Self::default()
        }
    }
}

/// The state that a stream's cycle writes beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub stream: Uuid,
    pub partition: i64,
    /// Keys with their new values, or with none to be deleted. The last value of a key wins.
    pub values: Vec<(String, Option<String>)>,
}

/// Why a whole batch was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The acknowledgement of this index did not count.
    Ack(usize, AckOutcome),
    /// The message of this index was refused.
    Push(usize, PushRefusal),
    /// A required lease is not valid.
    Lease(Uuid),
    /// There is no such stream.
    Stream,
}

/// What a write batch did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchOutcome {
    /// One per message and acknowledgement, in order; empty if the batch was rejected.
    pub pushed: Vec<Result<PushReceipt, PushRefusal>>,
    pub acked: Vec<AckOutcome>,
    pub rejection: Option<Rejection>,
    /// Wakes for the groups that it makes ready.
    pub wakes: Vec<Wake>,
}
