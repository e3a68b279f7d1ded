//! Answers as Jinaga's clients read them: errors are plain text.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::error::Error;

const NOSNIFF: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-content-type-options"),
    HeaderValue::from_static("nosniff"),
);
const TEXT: &str = "text/plain; charset=utf-8";
pub(super) const JSON: &str = "application/json; charset=utf-8";

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
            Self::NoBodyMemory(refusal) => (refusal.status(), self.to_string()),
            Self::Refused(refused) => (StatusCode::SERVICE_UNAVAILABLE, refused.to_string()),
            Self::Store(error) => stores(error),
        };
        let mut response = text(status, escaped(&message));
        let headers = response.headers_mut();
        headers.insert(NOSNIFF.0, NOSNIFF.1);
        if matches!(
            status,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        ) {
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
        Store::Unavailable(_) if error.is_disk_full() => {
            tracing::warn!(%error, "the feeds' store has no room");
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "The server's disk is full. Nothing was done; try again when there is room."
                    .to_owned(),
            )
        }
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

pub(super) fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A body that is sent as its chunks are found.
pub(super) fn streamed(
    kind: &'static str,
    begin: String,
    chunks: impl Stream<Item = Result<String, Error>> + Send + 'static,
    end: &'static str,
) -> Response {
    let once = |text: String| stream::once(async move { Ok(text) });
    let texts = once(begin).chain(chunks).chain(once(end.to_owned()));
    typed(kind, Body::from_stream(texts))
}

fn text(status: StatusCode, text: impl Into<String>) -> Response {
    let mut response = typed(TEXT, text.into());
    *response.status_mut() = status;
    response
}

pub(super) fn json(text: String) -> Response {
    typed(JSON, text)
}

pub(super) fn created() -> Response {
    text(StatusCode::CREATED, "Created")
}

/// Escaped for HTML, because the text may repeat parts of the request.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
