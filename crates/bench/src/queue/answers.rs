//! Of the answers, only as much as the next request needs.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use crate::line::Answer;

#[derive(Debug, Deserialize)]
struct Popped<'a> {
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    transaction_id: &'a str,
    partition_id: &'a str,
    lease_id: Option<&'a str>,
}

/// How many items of a push are stored.
pub(super) fn queued(answer: &Answer) -> anyhow::Result<usize> {
    ensure!(answer.status.is_success(), "{}", answer.shown());
    Ok(count(&answer.body, *br#""queued""#))
}

/// The body that acknowledges all that was popped, and for how many messages; `None` if the pop
/// found nothing.
pub(super) fn ack_of(
    answer: &Answer,
    batch: usize,
    group: Option<&str>,
) -> anyhow::Result<Option<(Bytes, usize)>> {
    ensure!(answer.status.is_success(), "{}", answer.shown());
    if answer.status == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    let popped: Popped<'_> =
        serde_json::from_slice(&answer.body).context("the answer is no pop's")?;
    if popped.messages.is_empty() {
        return Ok(None);
    }
    let mut body = Vec::with_capacity(64 + popped.messages.len() * 192);
    if batch == 1 {
        write_ack(&mut body, &popped.messages[0], group);
    } else {
        body.extend(br#"{"acknowledgments":["#);
        for (index, message) in popped.messages.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            write_ack(&mut body, message, None);
        }
        body.push(b']');
        if let Some(group) = group {
            body.extend(format!(r#","consumerGroup":"{group}""#).into_bytes());
        }
        body.push(b'}');
    }
    Ok(Some((body.into(), popped.messages.len())))
}

fn write_ack(body: &mut Vec<u8>, message: &Message<'_>, group: Option<&str>) {
    for (name, value) in [
        (r#"{"transactionId":""#, message.transaction_id),
        (r#"","partitionId":""#, message.partition_id),
        (r#"","leaseId":""#, message.lease_id.unwrap_or_default()),
    ] {
        body.extend(name.as_bytes());
        body.extend(value.as_bytes());
    }
    body.extend(br#"","status":"completed""#);
    if let Some(group) = group {
        body.extend(format!(r#","consumerGroup":"{group}""#).into_bytes());
    }
    body.push(b'}');
}

/// How many acknowledgements counted.
pub(super) fn acknowledged(answer: &Answer) -> anyhow::Result<usize> {
    ensure!(answer.status.is_success(), "{}", answer.shown());
    Ok(count(&answer.body, *br#""success":true"#))
}

/// Quotation marks inside of a JSON string are escaped, so words with theirs are never text.
fn count<const N: usize>(text: &[u8], word: [u8; N]) -> usize {
    text.windows(N).filter(|window| **window == word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    const POPPED: &str = r#"{"success":true,"leaseId":"l","messages":[
        {"id":"1","transactionId":"a","data":"\"queued\"","partitionId":"p","leaseId":"l"},
        {"id":"2","transactionId":"b","data":{"leaseId":"no"},"partitionId":"p","leaseId":"l"}]}"#;

    fn body(batch: usize, group: Option<&str>) -> String {
        let (body, _) = ack_of(&answer(200, POPPED), batch, group).unwrap().unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn one_message_is_acknowledged_by_itself_and_many_in_a_batch() {
        insta::assert_snapshot!(body(1, None), @r#"{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed"}"#);
        insta::assert_snapshot!(body(1, Some("g")), @r#"{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed","consumerGroup":"g"}"#);
        insta::assert_snapshot!(body(10, Some("g")), @r#"{"acknowledgments":[{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed"},{"transactionId":"b","partitionId":"p","leaseId":"l","status":"completed"}],"consumerGroup":"g"}"#);
    }

    #[test]
    fn an_empty_pop_is_one_without_a_body_or_without_messages() {
        assert!(ack_of(&answer(204, ""), 1, None).unwrap().is_none());
        let old = answer(200, r#"{"success":false,"messages":[]}"#);
        assert!(ack_of(&old, 1, None).unwrap().is_none());
        assert!(ack_of(&answer(500, "no"), 1, None).is_err());
    }

    #[test]
    fn only_what_counted_is_counted() {
        let pushed = r#"[{"status":"queued"},{"status":"duplicate","x":"\"queued\""}]"#;
        assert_eq!(queued(&answer(201, pushed)).unwrap(), 1);
        assert!(queued(&answer(503, pushed)).is_err());
        let acked = r#"[{"success":true},{"success":false,"error":"lease"},{"success":true}]"#;
        assert_eq!(acknowledged(&answer(200, acked)).unwrap(), 2);
    }
}
