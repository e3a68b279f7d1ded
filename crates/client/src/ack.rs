//! Saying what became of a popped message.

use serde::{Deserialize, Serialize};

use crate::{Message, null_as_default};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    pub transaction_id: String,
    /// A transaction id is unique only within its partition.
    pub partition_id: String,
    /// With it, the server refuses the ack when the lease has passed to another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    pub status: AckStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_group: Option<String>,
    /// Kept with a message that goes to the dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ack {
    pub fn of(message: &Message, status: AckStatus) -> Self {
        Self {
            transaction_id: message.transaction_id.clone(),
            partition_id: message.partition_id.clone(),
            lease_id: message.lease_id.clone(),
            status,
            consumer_group: (!message.consumer_group.is_empty())
                .then(|| message.consumer_group.clone()),
            error: None,
        }
    }

    #[must_use]
    pub fn error(mut self, error: impl Into<String>) -> Self {
        self.error = Some(error.into());
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckStatus {
    Completed,
    /// Counts against the queue's limit of retries.
    Failed,
    /// Comes again without being counted.
    Retry,
    /// Goes to the dead letters at once.
    Dlq,
}

/// A lost lease is here as `success: false` with its `error`: the work may be done by another
/// consumer by now, which the caller must decide about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AckResult {
    #[serde(default)]
    pub index: usize,
    #[serde(default, deserialize_with = "null_as_default")]
    pub transaction_id: String,
    pub success: bool,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub lease_released: bool,
    /// The message went to the dead letters.
    #[serde(default)]
    pub dlq: bool,
    /// The message had been acknowledged before.
    #[serde(default)]
    pub noop: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_of_a_message_carries_its_lease() {
        let message: Message = serde_json::from_str(
            r#"{"id":"m","transactionId":"t-1","data":1,"partitionId":"p-1","leaseId":"l-1",
                "consumerGroup":"mail"}"#,
        )
        .unwrap();
        let ack = Ack::of(&message, AckStatus::Failed).error("no such address");
        insta::assert_snapshot!(serde_json::to_string(&ack).unwrap(), @r#"{"transactionId":"t-1","partitionId":"p-1","leaseId":"l-1","status":"failed","consumerGroup":"mail","error":"no such address"}"#);
    }

    #[test]
    fn a_lost_lease_is_an_outcome() {
        let results: Vec<AckResult> = serde_json::from_str(
            r#"[{"index":0,"transactionId":"t-1","success":false,
                 "error":"invalid or expired lease","leaseReleased":false,"dlq":false,
                 "noop":false}]"#,
        )
        .unwrap();
        assert!(!results[0].success);
        assert_eq!(
            results[0].error.as_deref(),
            Some("invalid or expired lease")
        );
    }

    #[test]
    fn a_completed_ack_releases_the_lease() {
        let results: Vec<AckResult> = serde_json::from_str(
            r#"[{"index":0,"transactionId":"t-1","success":true,"error":null,
                 "leaseReleased":true,"dlq":false,"noop":false,"queueName":"q"}]"#,
        )
        .unwrap();
        assert!(results[0].success && results[0].lease_released);
        assert_eq!(results[0].error, None);
    }
}
