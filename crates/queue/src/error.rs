//! The errors of this door, and what its clients are told.

use wakeline_wake::HoldRefusal;
use wakeline_web::{HoldError, Problem};

use crate::seal::CannotOpen;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
    #[error(transparent)]
    Refused(#[from] HoldRefusal),
    #[error("{}", .0.detail())]
    Invalid(Problem),
    #[error("the server has no key for sealed messages")]
    NoKey,
    #[error(transparent)]
    CannotOpen(#[from] CannotOpen),
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Invalid(problem)
    }
}

impl From<HoldError<Self>> for Error {
    fn from(ended: HoldError<Self>) -> Self {
        match ended {
            HoldError::Refused(refused) => Self::Refused(refused),
            HoldError::Check(error) => error,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(problem) => problem,
            Error::Refused(refused) => refused.into(),
            Error::NoKey | Error::CannotOpen(_) => {
                tracing::warn!(%error, "sealed messages cannot be decrypted; they stay in the queue");
                Self::new(
                    http::StatusCode::INTERNAL_SERVER_ERROR,
                    "sealed",
                    "the messages are sealed and the server cannot open them; nothing was taken: \
                     its queue.encryption_key must be the one they were sealed with",
                )
            }
            Error::Store(error) => {
                tracing::warn!(%error, "the store failed");
                from_store(&error)
            }
        }
    }
}

/// The log has the database's text; the client is told what to do.
fn from_store(error: &wakeline_store::Error) -> Problem {
    use wakeline_store::Error as Store;
    match error {
        Store::Unavailable(_) if error.is_disk_full() => Problem::unavailable(
            "disk-full",
            "the server's disk is full; nothing was done, try again when there is room",
        ),
        Store::Unavailable(_) => Problem::unavailable(
            "store-unavailable",
            "the database cannot be reached; nothing was done, try again later",
        ),
        Store::Overloaded => Problem::unavailable("overloaded", error.to_string()),
        Store::OutcomeUnknown(_) => Problem::unavailable(
            "outcome-unknown",
            "the connection to the database broke before it answered, so it is not known whether \
             this was done; a push can be tried again safely with the same transactionId",
        ),
        Store::Failed(_) => Problem::new(
            http::StatusCode::INTERNAL_SERVER_ERROR,
            "store-failed",
            "the database refused the operation; nothing was done, and the log says why",
        ),
    }
}
