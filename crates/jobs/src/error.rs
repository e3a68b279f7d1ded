//! The errors of this door and their responses: zndraw-joblib's shapes where its client needs them,
//! the server's own for the rest.

use std::time::Duration;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;
use wakeline_wake::HoldRefusal;
use wakeline_web::{HoldError, Timing};

use crate::problem::{self, Kind};

pub const PROBLEM_JSON: &str = "application/problem+json";
/// `Retry-After` of a provider's timeout. Seconds.
const RETRY_AFTER: u16 = 2;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{detail}")]
    Problem { kind: &'static Kind, detail: String },
    /// FastAPI's shape of errors without a problem document: `{"detail": …}`.
    #[error("{1}")]
    Detail(StatusCode, &'static str),
    #[error("the request does not fit")]
    InvalidFields(Vec<InvalidField>),
    #[error("{0}")]
    InvalidRoom(String),
    /// For so long no password of this account is checked for this address.
    #[error("too many failed logins")]
    TooManyFailedLogins(Duration),
    /// A provider's own problem document, of a kind that is unknown here.
    #[error("a provider's problem, {0}")]
    ProviderProblem(StatusCode, Bytes),
    /// The error of a request that was held.
    #[error("{error}")]
    Held { error: Box<Self>, timing: Timing },
    #[error("{}", .0.detail())]
    Web(wakeline_web::Problem),
    #[error(transparent)]
    Refused(#[from] HoldRefusal),
    #[error(transparent)]
    Store(#[from] wakeline_store::Error),
}

/// What is wrong with a field, in FastAPI's form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvalidField {
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `query`, `path`, `header` or `body`, and the way from there.
    #[serde(rename = "loc")]
    pub at: Vec<Value>,
    #[serde(rename = "msg")]
    pub message: String,
    pub input: Value,
    #[serde(rename = "ctx", skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
}

/// A problem document, its fields in zndraw-joblib's order.
#[derive(Debug, Serialize)]
pub struct ProblemDocument<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
}

/// FastAPI's shape for everything else.
#[derive(Debug, Serialize)]
struct Details<T> {
    detail: T,
}

impl InvalidField {
    #[must_use]
    pub fn new(
        kind: &'static str,
        at: &[&str],
        message: impl Into<String>,
        input: impl Into<Value>,
    ) -> Self {
        Self {
            kind,
            at: at.iter().map(|part| Value::from(*part)).collect(),
            message: message.into(),
            input: input.into(),
            context: None,
        }
    }

    #[must_use]
    pub fn with_context(self, context: Value) -> Self {
        Self {
            context: Some(context),
            ..self
        }
    }
}

impl From<InvalidField> for Error {
    fn from(invalid: InvalidField) -> Self {
        Self::InvalidFields(vec![invalid])
    }
}

impl Error {
    pub fn problem(kind: &'static Kind, detail: impl Into<String>) -> Self {
        Self::Problem {
            kind,
            detail: detail.into(),
        }
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::problem(&problem::FORBIDDEN, detail)
    }

    /// There is no caller, or an unknown one.
    #[must_use]
    pub const fn unauthorized() -> Self {
        Self::Detail(StatusCode::UNAUTHORIZED, "Unauthorized")
    }

    #[must_use]
    pub fn held(self, timing: Timing) -> Self {
        Self::Held {
            error: Box::new(self),
            timing,
        }
    }

    /// One error of a group of held reads stands for all.
    #[must_use]
    pub fn held_since(self, since: Instant) -> Self {
        match self {
            Self::Held { error, timing } => Self::Held {
                error,
                timing: Timing {
                    hold: since.elapsed(),
                    ..timing
                },
            },
            other => other,
        }
    }

    /// The problem document.
    #[must_use]
    pub fn document<'a>(kind: &Kind, detail: &'a str) -> ProblemDocument<'a> {
        ProblemDocument {
            kind: format!("/v1/problems/{}", kind.name),
            title: title(kind.status),
            status: kind.status.as_u16(),
            detail,
        }
    }
}

/// FastAPI's words where they differ.
fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNPROCESSABLE_ENTITY => "Unprocessable Content",
        status => status.canonical_reason().unwrap_or("Error"),
    }
}

impl From<wakeline_web::Problem> for Error {
    fn from(problem: wakeline_web::Problem) -> Self {
        Self::Web(problem)
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

impl ProblemDocument<'_> {
    /// As it is kept as a provider's answer.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a problem is plain data")
    }
}

fn answer(status: StatusCode, content_type: &'static str, document: &impl Serialize) -> Response {
    let text = serde_json::to_vec(document).expect("a problem is plain data");
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        const JSON: &str = "application/json";
        match self {
            Self::Problem { kind, detail } => {
                let document = Self::document(kind, &detail);
                let mut response = answer(kind.status, PROBLEM_JSON, &document);
                if kind.name == problem::PROVIDER_TIMEOUT.name {
                    let seconds = HeaderValue::from(RETRY_AFTER);
                    response.headers_mut().insert(header::RETRY_AFTER, seconds);
                }
                response
            }
            Self::InvalidRoom(detail) => {
                Self::problem(&problem::INVALID_ROOM_ID, detail).into_response()
            }
            Self::TooManyFailedLogins(wait) => {
                // Rounded up: a client that comes at this time is not too early again.
                let seconds = wait.as_nanos().div_ceil(1_000_000_000);
                let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
                let detail = format!(
                    "logins of this account failed too often from this address; the password was \
                     not checked, try again in {seconds} s"
                );
                let kind = &problem::TOO_MANY_FAILED_LOGINS;
                let mut response = Self::problem(kind, detail).into_response();
                let seconds = HeaderValue::from(seconds);
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
                response
            }
            Self::ProviderProblem(status, document) => {
                let content_type = HeaderValue::from_static(PROBLEM_JSON);
                let headers = [(header::CONTENT_TYPE, content_type)];
                (status, headers, document).into_response()
            }
            Self::Held { error, timing } => {
                let mut response = error.into_response();
                timing.write(response.headers_mut());
                response
            }
            Self::Detail(status, detail) => {
                let mut response = answer(status, JSON, &Details { detail });
                if status == StatusCode::UNAUTHORIZED {
                    let bearer = HeaderValue::from_static("Bearer");
                    response
                        .headers_mut()
                        .insert(header::WWW_AUTHENTICATE, bearer);
                }
                response
            }
            Self::InvalidFields(fields) => {
                let document = Details { detail: fields };
                answer(StatusCode::UNPROCESSABLE_ENTITY, JSON, &document)
            }
            Self::Web(problem) => problem.into_response(),
            Self::Refused(refused) => wakeline_web::Problem::from(refused).into_response(),
            Self::Store(error) => {
                tracing::warn!(%error, "the store failed");
                from_store(&error).into_response()
            }
        }
    }
}

/// The log has the database's words; the caller learns what to do.
fn from_store(error: &wakeline_store::Error) -> wakeline_web::Problem {
    use wakeline_store::Error as Store;
    use wakeline_web::Problem;
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
             this was done; look before you try again",
        ),
        Store::Failed(_) => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "store-failed",
            "the database refused the operation; nothing was done, and the log says why",
        ),
    }
}
