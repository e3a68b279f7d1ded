//! Acknowledging popped messages.

use serde::{Deserialize, Serialize};

use crate::{Message, null_as_default};

/// The acknowledgement of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    /// The message's transaction id.
    pub transaction_id: String,
    /// The message's partition; a transaction id is unique only within it.
    pub partition_id: String,
    /// The lease of the pop. With it, the server refuses the ack if another consumer has the lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    /// What the server does with the message.
    pub status: AckStatus,
    /// The consumer group of the pop; none for the queue's own cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_group: Option<String>,
    /// Why the message failed; stored with a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Ack {
    /// Acknowledges a popped message under its lease and for its group.
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

    /// Sets the reason of a failure.
    #[must_use]
    pub fn error(mut self, error: impl Into<String>) -> Self {
        self.error = Some(error.into());
        self
    }
}

/// What the server does with an acknowledged message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AckStatus {
    /// Counts it as consumed.
    Completed,
    /// Redelivers it, or makes it a dead letter when the queue's retry limit is reached.
    Failed,
    /// Redelivers it without counting a retry.
    Retry,
    /// Makes it a dead letter now.
    Dlq,
}

/// The result of one acknowledgement. A lost lease is a result (`success` is false) and no
/// [`Error`](crate::Error): another consumer may have done the work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AckResult {
    /// The index of the acknowledgement in the request, from 0.
    #[serde(default)]
    pub index: usize,
    /// The message's transaction id.
    #[serde(default, deserialize_with = "null_as_default")]
    pub transaction_id: String,
    /// Whether the server has applied the acknowledgement.
    pub success: bool,
    /// Why it has not.
    #[serde(default)]
    pub error: Option<String>,
    /// Whether this acknowledgement has ended the lease: its partition is free for the next pop.
    #[serde(default)]
    pub lease_released: bool,
    /// Whether the message is a dead letter now.
    #[serde(default)]
    pub dlq: bool,
    /// Whether the message had been acknowledged before, so that nothing has changed.
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
