//! What goes wrong, and how the caller is told.

use wakeline_wake::Refused;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's mistake. Doing it again does not help.
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Forbidden(String),
    /// Somebody has to log in.
    #[error("{0}")]
    Unauthorized(String),
    #[error("feed_not_found")]
    FeedNotFound,
    #[error("{0}")]
    TooLarge(String),
    /// The body came too slowly. Nothing was done.
    #[error("{0}")]
    TooSlow(String),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
}

impl Error {
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}
