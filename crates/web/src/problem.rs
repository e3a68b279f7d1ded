//! Errors as RFC 9457 `application/problem+json`.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// What the caller reads when something is refused. What the log keeps is a separate text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    kind: &'static str,
    status: StatusCode,
    detail: String,
    error: Option<&'static str>,
    field: Option<String>,
    retry_after: Option<u16>,
}

/// A problem as it is sent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument<'a> {
    /// Names the kind of problem; stable, to branch on.
    #[serde(rename = "type")]
    #[schema(example = "urn:wakeline:invalid-field")]
    kind: String,
    title: &'a str,
    #[schema(example = 400)]
    status: u16,
    /// What is wrong, what to do, and whether a retry is safe.
    detail: &'a str,
    /// Where Queen's clients look for a text: the detail, or the words that Queen has for it.
    error: &'a str,
    /// The same as `type` in one word, for Queen's clients.
    #[schema(example = "invalid_field")]
    code: String,
    /// The field, parameter or header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl Problem {
    #[must_use]
    pub fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        Self {
            kind,
            status,
            detail: detail.into(),
            error: None,
            field: None,
            retry_after: None,
        }
    }

    /// The caller's mistake in `field`; `detail` says what was found and what is expected.
    #[must_use]
    pub fn invalid(field: &str, detail: impl AsRef<str>) -> Self {
        let detail = format!("{field}: {}", detail.as_ref());
        let problem = Self::new(StatusCode::BAD_REQUEST, "invalid-field", detail);
        Self {
            field: Some(field.to_owned()),
            ..problem
        }
    }

    /// Overload, drain or outage: nothing was done, and trying again later is right.
    #[must_use]
    pub fn unavailable(kind: &'static str, detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, kind, detail);
        Self {
            retry_after: Some(1),
            ..problem
        }
    }

    /// Too much of it for now: nothing was done, and trying again later is right.
    #[must_use]
    pub fn overload(kind: &'static str, detail: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, kind, detail);
        Self {
            retry_after: Some(1),
            ..problem
        }
    }

    #[must_use]
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// The same refusal under a kind of its own, for callers that branch on it.
    #[must_use]
    pub fn with_kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    /// The words of Queen, for a client that branches on them.
    #[must_use]
    pub fn with_error(self, error: &'static str) -> Self {
        Self {
            error: Some(error),
            ..self
        }
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// One word to branch on, spelled as Queen's codes are.
    #[must_use]
    pub fn code(&self) -> String {
        self.kind.replace('-', "_")
    }

    fn document(&self) -> ProblemDocument<'_> {
        ProblemDocument {
            kind: format!("urn:wakeline:{}", self.kind),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            error: self.error.unwrap_or(&self.detail),
            code: self.code(),
            field: self.field.as_deref(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.document()).expect("a problem is plain data");
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
