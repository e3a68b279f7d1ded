//! Why the store did not run an operation. Each text says whether a retry is safe.

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was done. Safe to retry when the database is back.
    #[error("the database cannot be reached; nothing was done, try again later ({0})")]
    Unavailable(String),
    /// Nothing was done. Safe to retry.
    #[error("too many operations wait for a commit; nothing was done, try again later")]
    Overloaded,
    /// The connection broke before the answer, or the answer could not be read. It may have been
    /// done.
    #[error("the database gave no clear answer; the outcome is unknown ({0})")]
    OutcomeUnknown(String),
    /// The database refused this operation alone.
    #[error("the database refused the operation ({0})")]
    Failed(String),
}

impl Error {
    /// Whether the database was away, in contrast to a refusal.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::OutcomeUnknown(_))
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            // The file's state, not the operation, is at fault.
            Some(
                Code::CannotOpen
                | Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::SystemIoFailure,
            ) => Self::Unavailable(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
