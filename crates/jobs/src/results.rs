//! Where answers of providers are kept, and who has been asked what.
//!
//! Answers are a cache: one that is lost is asked for again. [`crate::store`] keeps them in the
//! database, others in Redis or on disk; the configuration chooses by category.

use std::time::Duration;

use axum::body::Body;
use uuid::Uuid;

use crate::{
    provider::{Answer, Key, Request},
    store::Step,
};

/// What is known of an answer.
#[derive(Clone, Debug, Default)]
pub struct Look {
    pub answer: Option<Answer>,
    /// The provider has been asked, and is not asked again for so long.
    pub in_flight: Option<Duration>,
}

/// An answer on its way in, within the limit of this server.
#[derive(Debug)]
pub struct Upload {
    pub is_error: bool,
    pub body: Body,
    /// Bytes that it may have.
    pub limit: u64,
    /// How long it may pause.
    pub patience: Duration,
}

/// How an upload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    Done,
    TooLarge,
    TooSlow,
    BrokenOff,
}

/// A place for answers. Each method is one atomic step.
pub trait Results: Send + Sync + std::fmt::Debug {
    /// What is there for each key; in one question. What is older than its time is not there.
    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>>;

    /// Keeps an answer for `ttl`, in the place of an earlier one, and takes the mark off its
    /// question.
    fn put(&self, key: Key, upload: Upload, ttl: Duration) -> Step<'_, Kept>;

    /// Marks a question as asked for `ttl`. `false`: somebody has, and it is not over yet.
    fn begin(&self, request: Request, ttl: Duration) -> Step<'_, bool>;

    /// Takes the mark off; with a token only the mark of that time.
    fn end(&self, key: Key, token: Option<Uuid>) -> Step<'_, ()>;

    /// What the provider has been asked and not answered yet, oldest first.
    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>>;

    /// Removes all answers and marks of a provider's registrations before `version`; of a provider
    /// that is gone, all.
    fn forget(&self, provider: Uuid, version: Option<i64>) -> Step<'_, ()>;

    /// Removes a slice of what is over. How long until there may be more; `None`: nothing is kept.
    fn sweep(&self) -> Step<'_, Option<Duration>>;
}
