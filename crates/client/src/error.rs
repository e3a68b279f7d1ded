//! Why a call failed, and whether a repeat is safe.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's address is not a URL that this client can use.
    #[error("the server's address {url:?} cannot be used: {reason}")]
    BaseUrl {
        /// The address as it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },

    /// The token contains a character that no HTTP header can have.
    #[error("the token cannot be sent in a header: it has a control character or a line break")]
    Token,

    /// The connection failed, or no response arrived in time.
    #[error("{request} got no answer: {outcome}")]
    Transport {
        /// Method and path.
        request: String,
        /// What the request may have done.
        outcome: Outcome,
        /// The failure of the connection.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The server refused the request and changed nothing.
    #[error("{request} was refused with {status}: {problem}{}", after(*.retry_after))]
    Refused {
        /// Method and path.
        request: String,
        /// The status code.
        status: StatusCode,
        /// The server's explanation.
        problem: String,
        /// How long the server asks to wait before a repeat.
        retry_after: Option<Duration>,
    },

    /// The response does not follow the protocol. The server has carried out the request.
    #[error("{request} was answered with {status}, but the answer cannot be read: {reason}")]
    Undecodable {
        /// Method and path.
        request: String,
        /// The status code.
        status: StatusCode,
        /// What is wrong with the response.
        reason: String,
    },
}

fn after(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| {
        format!(" (retry after {} s)", wait.as_secs())
    })
}

/// What a failed request may have done on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing: there was no connection.
    NotSent,
    /// The request changes nothing, or a repeat changes nothing more.
    Repeatable,
    /// The request may have pushed messages; a repeat does not push them twice, because each has a
    /// `transactionId`.
    PushedOnce,
    /// The request may have pushed messages; a repeat may push those without a `transactionId`
    /// twice.
    PushedPerhapsTwice,
    /// The request may have leased messages, which are redelivered when the lease expires.
    TakenUntilLeaseEnds,
    /// The request may have consumed messages, which are not redelivered: a pop with `auto_ack`.
    TakenForGood,
}

impl Outcome {
    /// Whether a repeat of the request cannot do its work twice and loses nothing.
    pub fn retry_is_safe(self) -> bool {
        !matches!(self, Self::PushedPerhapsTwice | Self::TakenForGood)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSent => "the server could not be reached; nothing was sent and retry is safe",
            Self::Repeatable => "retry is safe",
            Self::PushedOnce => {
                "the outcome is unknown; retry is safe, as every item has a transactionId"
            }
            Self::PushedPerhapsTwice => {
                "the outcome is unknown; retry may push twice (it is safe with a transactionId)"
            }
            Self::TakenUntilLeaseEnds => {
                "the outcome is unknown; retry is safe, and a message that was taken is redelivered \
                 when its lease ends"
            }
            Self::TakenForGood => {
                "the outcome is unknown; a message that was taken under autoAck is lost to this \
                 consumer"
            }
        })
    }
}

impl Error {
    pub(crate) fn refused(
        request: String,
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        Self::Refused {
            request,
            status,
            problem: problem(status, body),
            retry_after: retry_after(headers),
        }
    }
}

/// The `detail` of a problem document, else the `error` of the queue protocol, else the `title`.
fn problem(status: StatusCode, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: Option<String>,
        error: Option<String>,
        title: Option<String>,
    }
    const MAX_CHARS: usize = 500;

    if let Ok(problem) = serde_json::from_slice::<Problem>(body)
        && let Some(text) = problem.detail.or(problem.error).or(problem.title)
    {
        return text;
    }
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        status
            .canonical_reason()
            .unwrap_or("no reason given")
            .to_owned()
    } else {
        text.chars().take(MAX_CHARS).collect()
    }
}

/// Only the form in seconds: an HTTP date would need synchronised clocks.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(header::RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn refused(status: u16, retry_after: Option<&'static str>, body: &str) -> String {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(value));
        }
        let status = StatusCode::from_u16(status).unwrap();
        Error::refused("push".to_owned(), status, &headers, body.as_bytes()).to_string()
    }

    #[test]
    fn a_refusal_has_the_problem_and_the_time_to_retry_after() {
        insta::assert_snapshot!(
            refused(503, Some("7"), r#"{"error":"too many","detail":"10000 requests are held"}"#),
            @"push was refused with 503 Service Unavailable: 10000 requests are held (retry after 7 s)"
        );
        insta::assert_snapshot!(
            refused(400, None, r#"{"error":"items: missing at line 1 column 2"}"#),
            @"push was refused with 400 Bad Request: items: missing at line 1 column 2"
        );
    }

    #[test]
    fn a_refusal_in_another_format_is_shown_unchanged() {
        insta::assert_snapshot!(
            refused(400, Some("Wed, 21 Oct 2026 07:28:00 GMT"), "Failed to deserialize query string\n"),
            @"push was refused with 400 Bad Request: Failed to deserialize query string"
        );
        insta::assert_snapshot!(
            refused(405, None, ""),
            @"push was refused with 405 Method Not Allowed: Method Not Allowed"
        );
    }
}
