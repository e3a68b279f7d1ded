//! The state of the server.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The held requests, as `GET /v1/waits` answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Waits {
    /// The number of held requests.
    pub total: u64,
    /// All other fields of the response.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// The answer of `GET /readyz`. The 503 of a server that is not ready is an answer and no error.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// Whether the server takes requests.
    pub ready: bool,
    /// The status code: 200 or 503.
    pub status: StatusCode,
    /// The text of the response.
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_fields_are_parsed_and_the_others_are_kept() {
        let waits: Waits =
            serde_json::from_str(r#"{"waits":[{"topic":"queue/a"}],"total":10000,"next":null}"#)
                .unwrap();
        assert_eq!(waits.total, 10_000);
        assert_eq!(waits.rest["waits"][0]["topic"], "queue/a");
    }
}
