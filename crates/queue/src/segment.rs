//! Messages as they are stored: many in a row, as a JSON array that SQL can read too.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    id,
    message::{Message, NewMessage},
};

/// Messages in a segment at most: a pop reads whole segments.
pub const MAX_MESSAGES: usize = 128;
/// Bytes above which no message is added to a segment.
pub const MAX_BYTES: usize = 32 * 1024;

#[derive(Debug, Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    p: &'a RawValue,
    #[serde(borrow, default)]
    t: Option<Cow<'a, str>>,
    #[serde(default)]
    r: Option<Uuid>,
    #[serde(borrow, default)]
    s: Option<Cow<'a, str>>,
    /// Sealed.
    #[serde(default)]
    e: bool,
}

/// A segment's text while it grows.
#[derive(Debug, Default)]
pub struct SegmentBody(String);

impl SegmentBody {
    pub fn add(&mut self, message: &NewMessage) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push_str(r#"{"p":"#);
        self.0.push_str(&message.payload);
        for (key, value) in [
            ("t", message.transaction_id.as_deref()),
            ("s", message.producer_sub.as_deref()),
        ] {
            if let Some(value) = value {
                self.0.push_str(",\"");
                self.0.push_str(key);
                self.0.push_str("\":");
                self.0
                    .push_str(&serde_json::to_string(value).expect("a string is JSON"));
            }
        }
        if let Some(trace) = message.trace_id {
            self.0.push_str(",\"r\":\"");
            self.0.push_str(&trace.to_string());
            self.0.push('"');
        }
        if message.is_sealed {
            self.0.push_str(",\"e\":true");
        }
        self.0.push('}');
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.0.len() + 1);
        text.push_str(&self.0);
        text.push(']');
        text
    }
}

/// A stored segment. `only_group`: the one group that is given its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub partition: i64,
    pub first: i64,
    pub last: i64,
    pub created_us: i64,
    pub only_group: Option<i64>,
    pub body: String,
}

impl Segment {
    /// The messages from position `from` on, `count` at most, without the positions that `skip` names.
    /// A text that is no segment is an error: the row was written by another program.
    pub fn messages(
        &self,
        from: i64,
        count: usize,
        mut skip: impl FnMut(i64) -> bool,
    ) -> Result<Vec<Message>, serde_json::Error> {
        let entries: Vec<Entry<'_>> = serde_json::from_str(&self.body)?;
        Ok((self.first..)
            .zip(entries)
            .filter(|(position, _)| *position >= from && !skip(*position))
            .take(count)
            .map(|(position, entry)| self.message(position, entry))
            .collect())
    }

    fn message(&self, position: i64, entry: Entry<'_>) -> Message {
        let id = id::message(self.created_us, self.partition, position);
        Message {
            id,
            position,
            transaction_id: entry.t.map_or_else(|| id.to_string(), Cow::into_owned),
            trace_id: entry.r,
            payload: entry.p.get().to_owned(),
            producer_sub: entry.s.map(Cow::into_owned),
            created_us: self.created_us,
            is_sealed: entry.e,
        }
    }
}

/// The transaction ids in a segment's text that producers gave.
pub fn given_transactions(body: &str) -> Result<Vec<String>, serde_json::Error> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(body)?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| entry.t.map(Cow::into_owned))
        .collect())
}

/// One message out of a segment's text, as text.
pub fn entry(body: &str, index: usize) -> Result<Option<String>, serde_json::Error> {
    let entries: Vec<&RawValue> = serde_json::from_str(body)?;
    Ok(entries.get(index).map(|entry| entry.get().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(transaction: Option<&str>, payload: &str) -> NewMessage {
        NewMessage {
            queue: "q".into(),
            partition: "p".into(),
            transaction_id: transaction.map(Into::into),
            trace_id: transaction.map(|_| Uuid::from_u128(5)),
            payload: payload.into(),
            producer_sub: transaction.map(|_| "me \"x\"".into()),
            ..NewMessage::default()
        }
    }

    #[test]
    fn a_segment_is_read_as_it_was_written() {
        let mut body = SegmentBody::default();
        body.add(&message(
            Some("a\u{1}\"b"),
            r#"{"n": 12345678901234567890, "z":"\u0000"}"#,
        ));
        body.add(&message(None, "null"));
        let segment = Segment {
            partition: 3,
            first: 10,
            last: 11,
            created_us: 1_000_000,
            only_group: None,
            body: body.text(),
        };
        let all = segment.messages(0, 9, |_| false).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].transaction_id, "a\u{1}\"b");
        assert_eq!(
            all[0].payload,
            r#"{"n": 12345678901234567890, "z":"\u0000"}"#
        );
        assert_eq!(all[0].producer_sub.as_deref(), Some("me \"x\""));
        assert_eq!(all[0].trace_id, Some(Uuid::from_u128(5)));
        assert_eq!(all[1].transaction_id, all[1].id.to_string());
        assert_eq!(id::partition_and_position(&all[1].id), Some((3, 11)));
        assert_eq!(segment.messages(11, 9, |_| false).unwrap(), all[1..]);
        assert_eq!(segment.messages(0, 9, |at| at == 10).unwrap(), all[1..]);
        assert_eq!(given_transactions(&segment.body).unwrap(), ["a\u{1}\"b"]);
        assert_eq!(
            entry(&segment.body, 1).unwrap().as_deref(),
            Some(r#"{"p":null}"#)
        );
    }
}
