//! What people ask for ([`Browse`]) and what they change ([`Curate`]).

mod groups;
mod letters;
pub mod messages;
pub mod parked;
pub mod queues;
pub mod tallies;
pub mod traces;
pub mod vitals;
mod walk;

use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_wake::Wake;

use super::read::Read;
use crate::{
    browse::{NewTrace, Retried},
    error::Error,
    id,
};

/// The questions of people, in the SQL that both databases share. The modules beside this one have
/// its methods, a noun each.
#[derive(Clone, Copy)]
pub struct Browse<'a> {
    read: &'a dyn Read,
}

impl std::fmt::Debug for Browse<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Browse")
    }
}

impl<'a> Browse<'a> {
    #[must_use]
    pub fn new(read: &'a dyn Read) -> Self {
        Self { read }
    }

    /// How the database itself is doing, as JSON.
    pub async fn database_health(&self) -> Result<serde_json::Value, Error> {
        Ok(self.read.health().await?)
    }
}

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
    /// Whom it makes ready.
    pub wake: Wake,
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
    fn delete_message(&self, address: Address) -> Write<bool>;

    /// Appends a dead letter as a new message for the group that had it.
    fn retry(&self, retry: Retry) -> Write<Retried>;

    /// Makes a message a dead letter of the groups (or of the one named) that have not consumed it
    /// and do not have it in their hands. Of how many.
    fn bury(&self, address: Address, group: Option<String>, error: String) -> Write<u64>;

    fn add_trace(&self, trace: NewTrace) -> Write<()>;
}
