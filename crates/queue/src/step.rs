//! A step: messages that are pushed and acknowledged together. A push, an acknowledgement, a
//! transaction and a stream's cycle are all steps.

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    ack::{Ack, Outcome},
    message::{NewMessage, Pushed, Refusal},
};

#[derive(Clone, Debug, Default)]
pub struct Step {
    pub pushes: Vec<NewMessage>,
    pub acks: Vec<Ack>,
    /// All or nothing: an acknowledgement that does not count, or a message that is refused,
    /// undoes the rest. Otherwise each stands for itself.
    pub is_whole: bool,
    /// Leases that must be alive, or nothing is done.
    pub required: Vec<Uuid>,
    pub state: Option<StateChange>,
}

/// What a stream's cycle writes beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateChange {
    pub stream: Uuid,
    pub partition: i64,
    /// A key with its new value, or without one to be deleted. Later ones win.
    pub values: Vec<(String, Option<String>)>,
}

/// Why a whole step was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The acknowledgement of this index did not count.
    Ack(usize, Outcome),
    /// The message of this index was refused.
    Push(usize, Refusal),
    /// A required lease is not alive.
    Lease(Uuid),
    /// The stream of the state is not known.
    Stream,
}

/// What a step did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// One per message and acknowledgement, in order; empty when the step was rejected.
    pub pushed: Vec<Result<Pushed, Refusal>>,
    pub acked: Vec<Outcome>,
    pub rejection: Option<Rejection>,
    /// Whom it makes ready.
    pub ready: Vec<Wake>,
}
