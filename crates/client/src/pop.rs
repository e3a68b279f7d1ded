//! Popping messages.

use std::fmt::Write;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::address::encode;
use crate::{Outcome, empty_as_none, null_as_default};

/// The protocol's hold of a pop that waits without a timeout.
const DEFAULT_HOLD: Duration = Duration::from_secs(30);

/// Which messages a pop takes, and how.
#[derive(Debug, Clone, Default)]
pub struct PopRequest {
    /// The queue's name.
    pub queue: String,
    /// The partition's name; none: any partition.
    pub partition: Option<String>,
    /// The consumer group; none: the queue's own cursor.
    pub group: Option<String>,
    /// The largest number of messages; none: the server's default.
    pub batch: Option<u32>,
    /// Whether the server holds the request until there is a message.
    pub wait: bool,
    /// How long the server holds the request. Default: 30 s.
    pub timeout: Option<Duration>,
    /// Whether the pop acknowledges the messages at once and takes no lease.
    pub auto_ack: bool,
}

impl PopRequest {
    /// Pops any messages of a queue, without a hold.
    pub fn new(queue: impl Into<String>) -> Self {
        Self {
            queue: queue.into(),
            ..Self::default()
        }
    }

    /// How long the server may hold the request; `None` if it may not.
    pub fn hold(&self) -> Option<Duration> {
        self.wait.then(|| self.timeout.unwrap_or(DEFAULT_HOLD))
    }

    /// The path and query of the request.
    pub fn path_and_query(&self) -> String {
        let mut path = format!("/api/v1/pop/queue/{}", encode(&self.queue));
        if let Some(partition) = &self.partition {
            write!(path, "/partition/{}", encode(partition)).expect("writing to a String succeeds");
        }
        let mut parameters = Vec::new();
        if let Some(group) = &self.group {
            parameters.push(format!("consumerGroup={}", encode(group)));
        }
        if let Some(batch) = self.batch {
            parameters.push(format!("batch={batch}"));
        }
        if self.wait {
            parameters.push("wait=true".to_owned());
        }
        if let Some(timeout) = self.timeout {
            parameters.push(format!("timeout={}", timeout.as_millis()));
        }
        if self.auto_ack {
            parameters.push("autoAck=true".to_owned());
        }
        if !parameters.is_empty() {
            write!(path, "?{}", parameters.join("&")).expect("writing to a String succeeds");
        }
        path
    }

    pub(crate) fn outcome(&self) -> Outcome {
        if self.auto_ack {
            Outcome::TakenForGood
        } else {
            Outcome::TakenUntilLeaseEnds
        }
    }
}

/// The messages that a pop took. They may be of several partitions; partition and lease here are those
/// of the first message.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PopResult {
    /// Always true.
    #[serde(default)]
    pub success: bool,
    /// The queue's name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub queue: String,
    /// The partition's name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition: String,
    /// The partition's UUID.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition_id: String,
    /// The lease's UUID; none after a pop with `auto_ack`.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub lease_id: Option<String>,
    /// The consumer group; `__QUEUE_MODE__` for the queue's own cursor.
    #[serde(default, deserialize_with = "null_as_default")]
    pub consumer_group: String,
    /// The messages, in the order of each partition.
    pub messages: Vec<Message>,
    /// The number of partitions that the messages are of.
    #[serde(default)]
    pub partitions_claimed: u32,
}

/// A popped message.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The message's UUID.
    pub id: String,
    /// The producer's id for the message, or the id that the server made.
    pub transaction_id: String,
    /// The producer's trace id.
    #[serde(default)]
    pub trace_id: Option<String>,
    /// The payload, byte by byte as it was pushed.
    pub data: Box<RawValue>,
    /// The subject of the producer's token.
    #[serde(default)]
    pub producer_sub: Option<String>,
    /// When it was pushed, as RFC 3339 text.
    #[serde(default, deserialize_with = "null_as_default")]
    pub created_at: String,
    /// The partition's UUID.
    pub partition_id: String,
    /// The partition's name.
    #[serde(default, deserialize_with = "null_as_default")]
    pub partition: String,
    /// The lease's UUID; none after a pop with `auto_ack`.
    #[serde(default, deserialize_with = "empty_as_none")]
    pub lease_id: Option<String>,
    /// The consumer group; `__QUEUE_MODE__` for the queue's own cursor.
    #[serde(default, deserialize_with = "null_as_default")]
    pub consumer_group: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pop_is_addressed_by_encoded_names_and_only_the_given_parameters() {
        assert_eq!(
            PopRequest::new("orders").path_and_query(),
            "/api/v1/pop/queue/orders"
        );
        let pop = PopRequest {
            partition: Some("eu/1".to_owned()),
            group: Some("mail & sms".to_owned()),
            batch: Some(10),
            wait: true,
            timeout: Some(Duration::from_millis(1500)),
            auto_ack: true,
            ..PopRequest::new("sp ace")
        };
        assert_eq!(
            pop.path_and_query(),
            "/api/v1/pop/queue/sp%20ace/partition/eu%2F1\
             ?consumerGroup=mail%20%26%20sms&batch=10&wait=true&timeout=1500&autoAck=true"
        );
    }

    #[test]
    fn only_a_pop_that_waits_is_held() {
        let mut pop = PopRequest {
            timeout: Some(Duration::from_secs(5)),
            ..PopRequest::new("q")
        };
        assert_eq!(pop.hold(), None);
        pop.wait = true;
        assert_eq!(pop.hold(), Some(Duration::from_secs(5)));
        pop.timeout = None;
        assert_eq!(pop.hold(), Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_leased_message_is_read_with_its_payload_untouched() {
        let popped: PopResult = serde_json::from_str(
            r#"{"success":true,"queue":"probe-3472a4-p","partition":"x",
                "partitionId":"9d68157f-5f64-4d17-9887-cf50938bcb8f",
                "leaseId":"01a1e199-f127-7000-87ac-a13083110f56","consumerGroup":"__QUEUE_MODE__",
                "messages":[{"id":"01a1e199-f08a-7000-9a8b-2512ca7bc7ac","transactionId":"t-1",
                  "traceId":null,"data":{"big":12345678901234567890,"k2":1, "k1":2},
                  "producerSub":null,"createdAt":"2026-11-15T23:45:24.631282Z",
                  "partitionId":"9d68157f-5f64-4d17-9887-cf50938bcb8f","partition":"x",
                  "leaseId":"01a1e199-f127-7000-87ac-a13083110f56","consumerGroup":"__QUEUE_MODE__",
                  "deliveryAttempt":1}],
                "partitionsClaimed":1,"conflation":false}"#,
        )
        .unwrap();
        let message = &popped.messages[0];
        assert_eq!(
            message.data.get(),
            r#"{"big":12345678901234567890,"k2":1, "k1":2}"#
        );
        assert_eq!(message.created_at, "2026-11-15T23:45:24.631282Z");
        assert_eq!(message.lease_id, popped.lease_id);
        assert!(popped.lease_id.is_some());
    }

    #[test]
    fn an_auto_acked_null_payload_is_a_message_without_a_lease() {
        let popped: PopResult = serde_json::from_str(
            r#"{"success":true,"queue":"q","partition":"z","partitionId":"p","leaseId":"",
                "consumerGroup":"__QUEUE_MODE__","messages":[{"id":"m","transactionId":"t",
                "traceId":null,"data":null,"producerSub":null,"createdAt":null,"partitionId":"p",
                "partition":"z","leaseId":"","consumerGroup":"__QUEUE_MODE__"}]}"#,
        )
        .unwrap();
        assert_eq!(popped.lease_id, None);
        assert_eq!(popped.messages[0].lease_id, None);
        assert_eq!(popped.messages[0].data.get(), "null");
    }
}
