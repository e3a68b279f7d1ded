//! Why the store did not run an operation. Each text says whether a retry is safe.

use std::fmt;

/// Begins the reason of an [`Error::Unavailable`] that is a full disk.
const DISK_FULL: &str = "the disk is full";

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was done. Safe to retry when the database is back.
    ///
    /// A full disk too is an outage ([`Error::is_disk_full`]), so that all who wait out an outage wait
    /// for room as well.
    #[error("{outage}; nothing was done, try again later ({0})", outage = outage(.0))]
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

fn outage(reason: &str) -> &'static str {
    if reason.starts_with(DISK_FULL) {
        "the database has no room for it"
    } else {
        "the database cannot be reached"
    }
}

impl Error {
    /// Nothing was done, because the database's disk has no room for it.
    #[must_use]
    pub fn disk_full(reason: impl fmt::Display) -> Self {
        Self::Unavailable(format!("{DISK_FULL}: {reason}"))
    }

    /// Whether it is a full disk. Then only what needs more room fails, and the rest goes on.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Unavailable(reason) if reason.starts_with(DISK_FULL))
    }

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
            Some(Code::DiskFull) => Self::disk_full(error),
            // The file's state, not the operation, is at fault.
            Some(
                Code::CannotOpen
                | Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::SystemIoFailure,
            ) => Self::Unavailable(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
