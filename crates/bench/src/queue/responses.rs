//! Reads of a response only as much as the next request needs.

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use crate::connection::Response;

#[derive(Debug, Deserialize)]
struct PopResponse<'a> {
    #[serde(borrow, default)]
    messages: Vec<PoppedMessage<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PoppedMessage<'a> {
    transaction_id: &'a str,
    partition_id: &'a str,
    lease_id: Option<&'a str>,
}

/// How many items of a push are stored.
pub(super) fn queued(response: &Response) -> anyhow::Result<usize> {
    response.check()?;
    Ok(count(&response.body, *br#""queued""#))
}

/// The body that acknowledges all that was popped, and for how many messages; `None` if the pop
/// found nothing.
pub(super) fn ack_of(
    response: &Response,
    batch: usize,
    group: Option<&str>,
) -> anyhow::Result<Option<(Bytes, usize)>> {
    response.check()?;
    if response.status == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    let popped: PopResponse<'_> = response.json().context("not the response of a pop")?;
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
        write_end(&mut body, group);
    }
    Ok(Some((body.into(), popped.messages.len())))
}

fn write_ack(body: &mut Vec<u8>, message: &PoppedMessage<'_>, group: Option<&str>) {
    for (name, value) in [
        (r#"{"transactionId":""#, message.transaction_id),
        (r#"","partitionId":""#, message.partition_id),
        (r#"","leaseId":""#, message.lease_id.unwrap_or_default()),
    ] {
        body.extend(name.as_bytes());
        body.extend(value.as_bytes());
    }
    body.extend(br#"","status":"completed""#);
    write_end(body, group);
}

fn write_end(body: &mut Vec<u8>, group: Option<&str>) {
    if let Some(group) = group {
        body.extend(format!(r#","consumerGroup":"{group}""#).into_bytes());
    }
    body.push(b'}');
}

/// How many acknowledgements succeeded.
pub(super) fn acknowledged(response: &Response) -> anyhow::Result<usize> {
    response.check()?;
    Ok(count(&response.body, *br#""success":true"#))
}

/// Of a single message.
pub(super) fn check_acknowledged(response: &Response) -> anyhow::Result<()> {
    ensure!(acknowledged(response)? == 1, "ack: {}", response.describe());
    Ok(())
}

/// Quotation marks inside a JSON string are escaped, so a word with its quotation marks is never a
/// part of a payload.
fn count<const N: usize>(text: &[u8], word: [u8; N]) -> usize {
    text.windows(N).filter(|window| **window == word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &'static str) -> Response {
        Response {
            status: StatusCode::from_u16(status).unwrap(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    const POPPED: &str = r#"{"success":true,"leaseId":"l","messages":[
        {"id":"1","transactionId":"a","data":"\"queued\"","partitionId":"p","leaseId":"l"},
        {"id":"2","transactionId":"b","data":{"leaseId":"no"},"partitionId":"p","leaseId":"l"}]}"#;

    fn body(batch: usize, group: Option<&str>) -> String {
        let (body, _) = ack_of(&response(200, POPPED), batch, group)
            .unwrap()
            .unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn one_message_is_acknowledged_by_itself_and_many_in_a_batch() {
        insta::assert_snapshot!(body(1, None), @r#"{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed"}"#);
        insta::assert_snapshot!(body(1, Some("g")), @r#"{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed","consumerGroup":"g"}"#);
        insta::assert_snapshot!(body(10, Some("g")), @r#"{"acknowledgments":[{"transactionId":"a","partitionId":"p","leaseId":"l","status":"completed"},{"transactionId":"b","partitionId":"p","leaseId":"l","status":"completed"}],"consumerGroup":"g"}"#);
    }

    #[test]
    fn a_pop_is_empty_without_a_body_or_without_messages() {
        assert!(ack_of(&response(204, ""), 1, None).unwrap().is_none());
        let old = response(200, r#"{"success":false,"messages":[]}"#);
        assert!(ack_of(&old, 1, None).unwrap().is_none());
        assert!(ack_of(&response(500, "no"), 1, None).is_err());
    }

    #[test]
    fn only_items_that_succeeded_are_counted() {
        let pushed = r#"[{"status":"queued"},{"status":"duplicate","x":"\"queued\""}]"#;
        assert_eq!(queued(&response(201, pushed)).unwrap(), 1);
        assert!(queued(&response(503, pushed)).is_err());
        let acked = r#"[{"success":true},{"success":false,"error":"lease"},{"success":true}]"#;
        assert_eq!(acknowledged(&response(200, acked)).unwrap(), 2);
    }
}
