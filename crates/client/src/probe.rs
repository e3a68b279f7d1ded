//! Looking at the server itself.

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// Who waits for what. Only the count is fixed here; the rest is passed on as the server says it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Waits {
    pub total: u64,
    #[serde(flatten)]
    pub rest: serde_json::Map<String, serde_json::Value>,
}

/// A server that is not ready says so with a 503, which is an answer and not an error.
#[derive(Debug, Clone)]
pub struct Readiness {
    pub ready: bool,
    pub status: StatusCode,
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_and_the_rest_is_kept() {
        let waits: Waits =
            serde_json::from_str(r#"{"waits":[{"topic":"queue/a"}],"total":10000,"next":null}"#)
                .unwrap();
        assert_eq!(waits.total, 10_000);
        assert_eq!(waits.rest["waits"][0]["topic"], "queue/a");
    }
}
