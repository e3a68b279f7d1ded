//! The answers of providers, and the locks on requests in flight.
//!
//! Answers are a cache: the request of a lost answer is sent again. [`crate::store`] keeps them in
//! the database, [`redis`] and [`files`] elsewhere; [`by_category`] says which backend a category
//! has. Backends know providers by their ids, and readers wait for a name, so the caller says which
//! readers a write wakes.

pub mod by_category;
pub mod chunks;
mod etag;
pub mod files;
mod memory;
pub mod redis;
mod upload_body;

use std::time::Duration;

use axum::body::Body;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use crate::{
    provider::{Answer, AnswerKey, ProviderRequest},
    store::{StoreFuture, in_micros},
};

pub use self::memory::UploadMemory;
pub(crate) use self::{
    chunks::{
        AnswerContent, CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, ChunkStore, ChunkedAnswer, receive,
    },
    etag::Etag,
    upload_body::UploadBody,
};

/// Open requests of a provider that are read at once.
pub const MAX_IN_FLIGHT: usize = 10_000;
/// Answers and locks that a sweep removes: few, because answers can be large.
pub(crate) const SWEPT_AT_ONCE: i64 = 100;
/// The longest time to live, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// An answer, or for how long its request is in flight.
#[derive(Clone, Debug, Default)]
pub struct AnswerState {
    pub answer: Option<Answer>,
    /// The request has been sent, and is not sent again for so long.
    pub in_flight: Option<Duration>,
}

/// What a waiter waits for. With a hash: that there is an answer, or that the request was not sent.
/// Without one: that the provider has requests that it may not have answered.
#[derive(Clone, Debug)]
pub struct ReadyCheck {
    pub provider: Uuid,
    pub version: i64,
    pub hash: Option<String>,
}

impl ReadyCheck {
    pub(crate) fn key(&self) -> Option<AnswerKey> {
        Some(AnswerKey {
            provider: self.provider,
            version: self.version,
            hash: self.hash.clone()?,
        })
    }
}

/// An answer that is being uploaded, within the limits of this server.
#[derive(Debug)]
pub struct Upload {
    pub is_error: bool,
    pub body: Body,
    /// The most bytes that it may have.
    pub limit: u64,
    /// How long it may pause, or wait for memory.
    pub patience: Duration,
    /// Where a backend keeps it as values, it takes its memory from this.
    pub memory: UploadMemory,
}

/// How an upload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadOutcome {
    Done,
    /// Nothing has changed, as with all that follow.
    TooLarge,
    /// It does not fit into the backend, whatever else would be removed.
    NoRoom,
    /// Other uploads have had the memory for too long.
    NoMemory,
    TooSlow,
    BrokenOff,
}

impl UploadOutcome {
    /// The outcome of an upload whose chunks were stored, or had expired because it was too slow.
    pub(crate) fn stored_if(is_there: bool) -> Self {
        if is_there { Self::Done } else { Self::TooSlow }
    }
}

/// A backend that keeps answers. Each method is one atomic step that may be repeated, with the same
/// outcome. A dropped future of a read has done nothing; a [`Write`] that was committed runs to its
/// end.
pub trait ResultBackend: Send + Sync + std::fmt::Debug {
    /// Whether this is the database that has the providers too, which reads both in one statement.
    fn is_store(&self) -> bool {
        false
    }

    /// The state of each answer, in one query. An expired answer is not there.
    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>>;

    /// Which of the checks hold, in one query, without the answers themselves.
    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>>;

    /// Stores an answer for `ttl` in place of an earlier one, and releases the lock on its request,
    /// once all of it has arrived. A reader of the earlier one still gets all of it. The body
    /// cannot be sent again, so a repeat is another upload.
    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome>;

    /// Locks a request for `ttl`. `false`: another caller has the lock, or the answer is there,
    /// because it may have arrived since the caller has read. A repeat with the same token has the
    /// same outcome. It wakes no reader: the follow-up sends the request to the provider.
    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool>;

    /// Releases the lock; with a token, only the lock of that token.
    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()>;

    /// The requests that the provider has not answered yet, oldest first, at most
    /// [`MAX_IN_FLIGHT`].
    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>>;

    /// Removes all answers and locks of a provider's registrations before `version`; `None` for a
    /// removed provider: all.
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()>;

    /// Removes a slice of what has expired. Returns how long until there may be more; `None`:
    /// nothing is left to expire. A repeat goes on with the next slice.
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

/// A time to live in microseconds.
pub(crate) fn lasting(ttl: Duration) -> i64 {
    in_micros(ttl.min(LONGEST))
}

/// What is left of a time in microseconds.
pub(crate) fn left(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}
