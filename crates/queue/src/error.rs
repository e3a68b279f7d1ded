//! The errors of this door, and what its clients are told.

use wakeline_wake::HoldRefusal;
use wakeline_web::{HoldError, Problem};

use crate::seal::{CannotOpen, FILE_NAME, OtherKey};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
    #[error(transparent)]
    Refused(#[from] HoldRefusal),
    #[error("{}", .0.detail())]
    Invalid(Problem),
    #[error(transparent)]
    CannotOpen(#[from] CannotOpen),
    #[error(transparent)]
    OtherKey(#[from] OtherKey),
    #[error("the key file: {0}")]
    KeyFile(std::io::Error),
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
            Error::CannotOpen(reason) => {
                tracing::warn!(error = %reason, "sealed messages cannot be decrypted; they stay in the queue");
                Self::new(
                    http::StatusCode::INTERNAL_SERVER_ERROR,
                    "sealed",
                    format!("{reason}; nothing was taken. Add that key to queue.encryption_key"),
                )
            }
            Error::OtherKey(reason) => {
                tracing::warn!(error = %reason, "nothing can be sealed");
                Self::new(
                    http::StatusCode::INTERNAL_SERVER_ERROR,
                    "sealed",
                    format!(
                        "{reason}; nothing was done. Add the store's key to queue.encryption_key (if it \
                         was made by the server, restore the file {FILE_NAME} of its data directory): \
                         no other key is used beside messages that are sealed already"
                    ),
                )
            }
            Error::KeyFile(error) => {
                tracing::warn!(%error, "no key could be made");
                Self::new(
                    http::StatusCode::INTERNAL_SERVER_ERROR,
                    "key-file",
                    "the server cannot make a key in its data directory; nothing was done, and the log \
                     says why",
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
