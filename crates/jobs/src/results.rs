//! Where answers of providers are kept, and who has been asked what.
//!
//! Answers are a cache: one that is lost is asked for again. [`crate::store`] keeps them in the
//! database, [`redis`] and [`files`] elsewhere; [`choice`] is which of them a category has. They know
//! providers by their ids and readers wait for a name, so the caller says which readers a write wakes.

pub mod choice;
mod etag;
pub mod files;
mod incoming;
mod memory;
pub mod pieces;
pub mod redis;

use std::time::Duration;

use axum::body::Body;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use crate::{
    provider::{Answer, Key, Request},
    store::{Step, in_micros},
};

pub use self::memory::Memory;
pub(crate) use self::{
    etag::Etag,
    incoming::Incoming,
    pieces::{Content, GRACE, Pieced, Pieces, REMOVED_AT_ONCE, receive},
};

/// Questions of a provider that are told at once.
pub const MAX_IN_FLIGHT: usize = 10_000;
/// Answers and marks that a sweep removes: few, because answers can be large.
pub(crate) const SWEPT_AT_ONCE: i64 = 100;
/// Nothing is kept for longer, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub answer: Option<Answer>,
    /// The provider has been asked, and is not asked again for so long.
    pub in_flight: Option<Duration>,
}

/// What whoever waits is called for. With a hash: whether there is an answer, or nobody has asked for
/// it. Without one: whether the provider may have been asked something that it has not answered.
#[derive(Clone, Debug)]
pub struct Glance {
    pub provider: Uuid,
    pub version: i64,
    pub hash: Option<String>,
}

impl Glance {
    pub(crate) fn key(&self) -> Option<Key> {
        Some(Key {
            provider: self.provider,
            version: self.version,
            hash: self.hash.clone()?,
        })
    }
}

/// An answer on its way in, within the limit of this server.
#[derive(Debug)]
pub struct Upload {
    pub is_error: bool,
    pub body: Body,
    /// Bytes that it may have.
    pub limit: u64,
    /// How long it may pause, or wait for memory.
    pub patience: Duration,
    /// Where it is kept as values, what it has in hand is lent from this.
    pub memory: Memory,
}

/// How an upload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Done,
    /// Nothing has changed, as with those that follow.
    TooLarge,
    /// It does not fit into the place, whatever else would be removed.
    NoRoom,
    /// Others have had the memory for it for too long.
    NoMemory,
    TooSlow,
    BrokenOff,
}

impl Kept {
    /// Of one whose pieces were there when it was put, or had been swept as it came too slowly.
    pub(crate) fn if_there(is_there: bool) -> Self {
        if is_there { Self::Done } else { Self::TooSlow }
    }
}

/// A place for answers. Each method is one atomic step that may be repeated.
pub trait Results: Send + Sync + std::fmt::Debug {
    /// Whether it is the database that has the providers too, which answers for both at once.
    fn is_store(&self) -> bool {
        false
    }

    /// What is there for each key; in one question. What is older than its time is not there.
    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>>;

    /// The same for those who need not have the answers themselves; in one question.
    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>>;

    /// Keeps an answer for `ttl`, in the place of an earlier one, and takes the mark off its
    /// question, once all of it has come. Whoever reads the earlier one still gets all of it.
    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept>;

    /// Marks a question as asked for `ttl`. `false`: somebody has, and it is not over yet; or the
    /// answer is there, for it may have come since whoever calls has looked. The same token again is
    /// the same time. It wakes nobody: the follow-up sends the question to the provider.
    fn begin(&self, request: Request, ttl: Duration) -> Write<bool>;

    /// Takes the mark off; with a token only the mark of that time.
    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()>;

    /// What the provider has been asked and not answered yet, oldest first, [`MAX_IN_FLIGHT`] at
    /// most.
    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>>;

    /// Removes all answers and marks of a provider's registrations before `version`; of a provider
    /// that is gone, all.
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()>;

    /// Removes a slice of what is over. How long until there may be more; `None`: there is nothing
    /// to be swept.
    fn sweep(&self) -> Write<Option<Duration>>;
}

/// The error of a step after which something may have been done: the door rechecks its waiters.
pub(crate) fn outcome_unknown(error: Error) -> Error {
    match error {
        Error::Unavailable(reason) | Error::Failed(reason) | Error::OutcomeUnknown(reason) => {
            Error::OutcomeUnknown(reason)
        }
        Error::Overloaded => Error::OutcomeUnknown(error.to_string()),
    }
}

/// Microseconds that something is kept.
pub(crate) fn lasting(ttl: Duration) -> i64 {
    in_micros(ttl.min(LONGEST))
}

/// What is left of a time in microseconds.
pub(crate) fn left(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
