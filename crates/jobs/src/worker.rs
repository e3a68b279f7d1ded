//! Workers: processes that offer jobs and providers for as long as they send heartbeats.

use uuid::Uuid;

use crate::error::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub id: Uuid,
    /// Microseconds since 1970.
    pub last_heartbeat: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSummary {
    pub worker: Worker,
    pub job_count: i64,
}

/// The outcome of an operation that only an owner may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerOutcome<T> {
    NotFound,
    /// It is another user's.
    NotOwner,
    Done(T),
}

impl<T> OwnerOutcome<T> {
    pub(crate) fn done_or(self, not_found: Error, not_owner: &str) -> Result<T, Error> {
        match self {
            Self::Done(done) => Ok(done),
            Self::NotFound => Err(not_found),
            Self::NotOwner => Err(Error::forbidden(not_owner)),
        }
    }
}
