//! Pushing messages.

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Outcome, null_as_default};

/// A message to push.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PushItem {
    /// The queue's name; a new queue is created.
    pub queue: String,
    /// The partition's name; none: the server's default partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The payload, any JSON.
    pub payload: Box<RawValue>,
    /// An id by which the server recognises a repeat within the queue's deduplication window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_id: Option<String>,
    /// An id that is stored with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

impl PushItem {
    /// A message for the default partition of a queue. Fails if the payload is not JSON.
    pub fn new(
        queue: impl Into<String>,
        payload: &(impl Serialize + ?Sized),
    ) -> serde_json::Result<Self> {
        Ok(Self {
            queue: queue.into(),
            partition: None,
            payload: to_raw_value(payload)?,
            transaction_id: None,
            trace_id: None,
        })
    }

    /// Sets the partition.
    #[must_use]
    pub fn partition(mut self, partition: impl Into<String>) -> Self {
        self.partition = Some(partition.into());
        self
    }

    /// Sets the id that makes a repeat safe.
    #[must_use]
    pub fn transaction_id(mut self, transaction_id: impl Into<String>) -> Self {
        self.transaction_id = Some(transaction_id.into());
        self
    }
}

/// The result of one pushed item.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PushResult {
    /// The index of the item in the request, from 0.
    #[serde(default)]
    pub index: usize,
    /// Whether the message was stored.
    pub status: PushStatus,
    /// The message's UUID; for a duplicate, that of the first message.
    #[serde(default, deserialize_with = "null_as_default")]
    pub message_id: String,
    /// The item's transaction id, or the id that the server made.
    #[serde(default, deserialize_with = "null_as_default")]
    pub transaction_id: String,
    /// The queue's name.
    #[serde(default, rename = "queueName", deserialize_with = "null_as_default")]
    pub queue: String,
    /// Why the item failed.
    #[serde(default)]
    pub error: Option<String>,
}

/// What the server did with a pushed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PushStatus {
    /// The server stored the message.
    Queued,
    /// The server stored nothing: there is a message with the same transaction id.
    Duplicate,
    /// The server accepted the message during maintenance, and queues it afterwards.
    Buffered,
    /// The server stored nothing; see [`PushResult::error`].
    Failed,
    /// Another status, which this client does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Serialize)]
pub(crate) struct PushBody<'a> {
    pub(crate) items: &'a [PushItem],
}

pub(crate) fn outcome(items: &[PushItem]) -> Outcome {
    if items.iter().all(|item| item.transaction_id.is_some()) {
        Outcome::PushedOnce
    } else {
        Outcome::PushedPerhapsTwice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_sent_unchanged() {
        let mut item = PushItem::new("q", &())
            .unwrap()
            .partition("x")
            .transaction_id("t-1");
        item.payload =
            RawValue::from_string(r#"{"big":12345678901234567890,"k2":1,"k1":2}"#.to_owned())
                .unwrap();
        let body = serde_json::to_string(&PushBody { items: &[item] }).unwrap();
        insta::assert_snapshot!(body, @r#"{"items":[{"queue":"q","partition":"x","payload":{"big":12345678901234567890,"k2":1,"k1":2},"transactionId":"t-1"}]}"#);
    }

    #[test]
    fn queued_duplicate_and_failed_items_are_read() {
        let answer = r#"[
            {"index":0,"message_id":"01a1e199-f08a-7000-9a8b-2512ca7bc7ac","transaction_id":"t-1",
             "queueName":"probe-3472a4-p","status":"queued"},
            {"index":1,"message_id":"01a1e199-f08a-7000-9a8b-2512ca7bc7ac","transaction_id":"t-1",
             "queueName":"probe-3472a4-p","status":"duplicate","partition_id":null},
            {"index":2,"status":"failed","error":"the queue is full","message_id":null},
            {"index":3,"status":"shelved"}
        ]"#;
        let pushed: Vec<PushResult> = serde_json::from_str(answer).unwrap();
        assert_eq!(pushed[0].queue, "probe-3472a4-p");
        assert_eq!(pushed[0].message_id, pushed[1].message_id);
        assert_eq!(
            pushed.iter().map(|item| item.status).collect::<Vec<_>>(),
            [
                PushStatus::Queued,
                PushStatus::Duplicate,
                PushStatus::Failed,
                PushStatus::Unknown
            ]
        );
        assert_eq!(pushed[2].error.as_deref(), Some("the queue is full"));
    }

    #[test]
    fn a_push_is_repeatable_only_when_every_item_has_its_id() {
        let named = PushItem::new("q", &1).unwrap().transaction_id("t");
        let unnamed = PushItem::new("q", &1).unwrap();
        assert!(outcome(std::slice::from_ref(&named)).retry_is_safe());
        assert!(!outcome(&[named, unnamed]).retry_is_safe());
    }
}
