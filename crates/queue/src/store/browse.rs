//! What people ask for, as questions to [`Read`], and what they change.

pub mod groups;
pub mod letters;
pub mod messages;
pub mod parked;
pub mod queues;
pub mod tallies;
pub mod traces;
pub mod vitals;
mod walk;

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_store::Error;

use crate::{
    browse::{NewTrace, Retried},
    id,
};

/// A message by its partition's number and its transaction id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub partition: i64,
    pub transaction_id: String,
}

impl Address {
    /// Where it is, if its id is one that the server gave.
    #[must_use]
    pub fn given(&self) -> Option<i64> {
        crate::book::given_by_us(self.partition, &self.transaction_id)
    }

    #[must_use]
    pub fn hash(&self) -> Uuid {
        id::hash(&self.transaction_id)
    }
}

/// A dead letter to be appended again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub letter: i64,
    pub partition: i64,
    /// The transaction id that its producer gave.
    pub given: Option<String>,
    /// The message with that id, and without one.
    pub kept: String,
    pub fresh: String,
}

impl Retry {
    /// What became of it.
    #[must_use]
    pub fn done(&self, created_us: i64, position: i64, is_kept: bool) -> Retried {
        let id = id::message(created_us, self.partition, position);
        let kept = self.given.clone().filter(|_| is_kept);
        Retried::Done {
            id,
            transaction_id: kept.unwrap_or_else(|| id.to_string()),
        }
    }
}

/// What people change. Each is one atomic step.
pub trait Curate {
    /// Deletes a message for everyone, and its dead letters. Whether there was one.
    fn delete_message(&self, address: Address) -> BoxFuture<'_, Result<bool, Error>>;

    /// Appends a dead letter as a new message for the group that had it.
    fn retry(&self, retry: Retry) -> BoxFuture<'_, Result<Retried, Error>>;

    /// Makes a message a dead letter of the groups (or of the one named) that have not consumed it
    /// and do not have it in their hands. Of how many.
    fn bury(
        &self,
        address: Address,
        group: Option<String>,
        error: String,
    ) -> BoxFuture<'_, Result<u64, Error>>;

    fn add_trace(&self, trace: NewTrace) -> BoxFuture<'_, Result<(), Error>>;
}
