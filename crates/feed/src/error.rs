//! Errors of the door: who caused them decides the status.

use wakeline_wake::HoldRefusal;

use crate::{
    bookmark,
    fact::record,
    graph::Problem,
    login::{self, users},
    policy::distribution::DecideError,
    reading,
};

/// Clients know this text for every wrong hash or signature; the reason follows it.
pub(crate) const BAD_SIGNATURES: &str = "The signatures on the facts are invalid.";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's mistake. Doing it again does not help.
    #[error("{0}")]
    Invalid(String),
    /// The caller's mistake, too. Only the route knows under which name it was sent.
    #[error(transparent)]
    Bookmark(#[from] bookmark::Error),
    #[error("{0}")]
    Forbidden(String),
    /// The caller has to log in.
    #[error("{0}")]
    Unauthorized(String),
    #[error("feed_not_found")]
    FeedNotFound,
    #[error("{0}")]
    TooLarge(String),
    /// The body came too slowly. Nothing was done.
    #[error("{0}")]
    TooSlow(String),
    /// The memory for bodies is used up, by this caller or by all. Nothing was done.
    #[error("{}", .0.detail())]
    NoBodyMemory(wakeline_web::Problem),
    #[error(transparent)]
    Refused(#[from] HoldRefusal),
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
}

impl Error {
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::Invalid(text.into())
    }
}

impl From<crate::specification::scanner::Error> for Error {
    fn from(error: crate::specification::scanner::Error) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<crate::declaration::facts::Error> for Error {
    fn from(error: crate::declaration::facts::Error) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<crate::graph::Error> for Error {
    fn from(error: crate::graph::Error) -> Self {
        match error.problem {
            Problem::Many { what, .. } => Self::TooLarge(limited(&error, what)),
            _ => Self::Invalid(error.to_string()),
        }
    }
}

/// With the setting that limits it, if there is one.
fn limited(error: &dyn std::error::Error, what: &str) -> String {
    let setting = match what {
        "facts" => " (feeds.max_facts)",
        "references" => " (feeds.max_references)",
        _ => "",
    };
    format!("{error}, the limit of this server{setting}; send it in parts")
}

impl From<record::BodyError> for Error {
    fn from(refused: record::BodyError) -> Self {
        match refused {
            record::BodyError::WrongHash { .. } => {
                Self::Forbidden(format!("{BAD_SIGNATURES} {refused}"))
            }
            record::BodyError::Many { list, .. } => Self::TooLarge(limited(&refused, list)),
            _ => Self::Invalid(refused.to_string()),
        }
    }
}

impl From<reading::Error> for Error {
    fn from(error: reading::Error) -> Self {
        match error {
            reading::Error::Store(error) => Self::Store(error),
            other => Self::Invalid(other.to_string()),
        }
    }
}

impl From<users::Error> for Error {
    fn from(error: users::Error) -> Self {
        match error {
            users::Error::Store(error) => Self::Store(error),
            other => Self::Store(wakeline_store::Error::Failed(other.to_string())),
        }
    }
}

impl From<login::LoginError> for Error {
    fn from(refused: login::LoginError) -> Self {
        match refused {
            login::LoginError::Unavailable(_) => {
                Self::Store(wakeline_store::Error::Unavailable(refused.to_string()))
            }
            refused => Self::Unauthorized(refused.to_string()),
        }
    }
}

impl From<DecideError> for Error {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Store(error) => Self::Store(error),
            DecideError::TooManyFeeds(error) => Self::Invalid(error.to_string()),
        }
    }
}
