//! Answers as Jinaga's clients read them: errors are plain text.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::error::Error;

const NOSNIFF: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-content-type-options"),
    HeaderValue::from_static("nosniff"),
);
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (status, message) = match &self {
            Self::Invalid(text) => (StatusCode::BAD_REQUEST, text.clone()),
            Self::Bookmark(error) => (StatusCode::BAD_REQUEST, error.to_string()),
            Self::Forbidden(text) => (StatusCode::FORBIDDEN, text.clone()),
            Self::Unauthorized(text) => (StatusCode::UNAUTHORIZED, text.clone()),
            Self::FeedNotFound => (StatusCode::NOT_FOUND, self.to_string()),
            Self::TooLarge(text) => (StatusCode::PAYLOAD_TOO_LARGE, text.clone()),
            Self::TooSlow(text) => (StatusCode::REQUEST_TIMEOUT, text.clone()),
            Self::Refused(refused) => (StatusCode::SERVICE_UNAVAILABLE, refused.to_string()),
            Self::Store(error) => stores(error),
        };
        let mut response = text(status, escaped(&message));
        let headers = response.headers_mut();
        headers.insert(NOSNIFF.0, NOSNIFF.1);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What the log keeps is not what the caller reads.
fn stores(error: &wakeline_store::Error) -> (StatusCode, String) {
    use wakeline_store::Error as Store;
    match error {
        Store::Failed(_) => {
            tracing::error!(%error, "the feeds' store failed");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal server error".to_owned(),
            )
        }
        Store::Overloaded => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Too much is waiting for the database. Nothing was done; try again.".to_owned(),
        ),
        Store::Unavailable(_) => {
            tracing::warn!(%error, "the feeds' store is not to be had");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "The database does not answer. Nothing was done; try again.".to_owned(),
            )
        }
        Store::OutcomeUnknown(_) => {
            tracing::warn!(%error, "the feeds' store has lost an answer");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "The database was lost in the middle. Facts are saved once however often they are \
                 sent; try again."
                    .to_owned(),
            )
        }
    }
}

pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

pub(super) fn json(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

pub(super) fn created() -> Response {
    text(StatusCode::CREATED, "Created")
}

/// As a page would show it: the text may repeat what was sent.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
