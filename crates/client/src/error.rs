//! What can go wrong, and what the caller may do about it.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("the server's address {url:?} cannot be used: {reason}")]
    BaseUrl { url: String, reason: String },

    #[error("the token cannot stand in a header: it has a control character or a line break")]
    Token,

    /// The connection failed, or no answer came in time.
    #[error("{request} got no answer: {outcome}")]
    Transport {
        request: String,
        outcome: Outcome,
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The server understood enough to say no.
    #[error("{request} was refused with {status}: {problem}{}", after(*.retry_after))]
    Refused {
        request: String,
        status: StatusCode,
        problem: String,
        retry_after: Option<Duration>,
    },

    /// An answer came and is not what the protocol says. The request itself was carried out.
    #[error("{request} was answered with {status}, but the answer cannot be read: {reason}")]
    Undecodable {
        request: String,
        status: StatusCode,
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
    /// There was no connection, so nothing was asked.
    NotSent,
    /// The request changes nothing, or repeating it changes nothing more.
    Repeatable,
    /// A push whose items all carry a `transactionId`.
    PushedOnce,
    /// A push with an item that the server cannot recognise when it comes again.
    PushedPerhapsTwice,
    /// A pop under a lease: what was taken comes again when the lease runs out.
    TakenUntilLeaseEnds,
    /// A pop with `auto_ack`: what was taken does not come again.
    TakenForGood,
}

impl Outcome {
    /// Whether the same request may be sent again without doing its work twice.
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
                "the outcome is unknown; retry is safe, and a message that was taken comes again \
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

/// `detail` of a problem document is written for the person who reads it; `error` is what the
/// queue protocol has; `title` is better than nothing.
fn problem(status: StatusCode, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: Option<String>,
        error: Option<String>,
        title: Option<String>,
    }
    const SHOWN: usize = 500;

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
        text.chars().take(SHOWN).collect()
    }
}

/// Only the form in seconds: an HTTP date would need the server's clock to be ours.
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
    fn a_refusal_says_the_problem_and_when_to_come_again() {
        insta::assert_snapshot!(
            refused(503, Some("7"), r#"{"error":"too many","detail":"10000 requests are held"}"#),
            @"push was refused with 503 Service Unavailable: 10000 requests are held (retry after 7 s)"
        );
        insta::assert_snapshot!(
            refused(400, None, r#"{"error":"bad body: missing field `items` at line 1 column 2"}"#),
            @"push was refused with 400 Bad Request: bad body: missing field `items` at line 1 column 2"
        );
    }

    #[test]
    fn a_refusal_in_another_format_is_shown_as_it_came() {
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
