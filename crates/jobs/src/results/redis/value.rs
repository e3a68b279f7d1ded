//! Answers and marks as the values of keys.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use redis::Value;
use uuid::Uuid;
use wakeline_store::Error;

use crate::{
    provider::{Answer, AnswerBody, Key, Request},
    results::{Etag, Look, Pieced, Pieces},
};

/// Before an answer's bytes: what it is, and the tag.
pub(super) const HEAD: usize = 1 + Etag::BYTES;
/// What it can be.
const PROBLEM: u8 = 1;
const IN_PIECES: u8 = 2;
/// Of one in pieces, instead of the bytes: the upload's id as text, and how long they are.
const UPLOAD: usize = 32;
const LENGTH: usize = 8;
/// Before a mark's parameters: the token, and the time in microseconds as digits.
const TOKEN: usize = 16;
const TIME: usize = 16;

/// Writes the head of an answer that is whole into the space before it.
pub(super) fn head(bytes: &mut [u8], is_error: bool, etag: &Etag) {
    bytes[0] = u8::from(is_error) * PROBLEM;
    bytes[1..HEAD].copy_from_slice(etag.as_bytes());
}

pub(super) fn in_pieces(is_error: bool, etag: &Etag, upload: &str, length: i64) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    head(&mut bytes, is_error, etag);
    bytes[0] |= IN_PIECES;
    bytes.extend_from_slice(upload.as_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

/// With the upload of an answer that is in pieces.
pub(super) fn seen(
    left: &Value,
    answer: Value,
    pieces: &Arc<dyn Pieces>,
) -> Result<(Look, Option<String>), Error> {
    let Value::Int(left) = left else {
        return Err(unclear());
    };
    let (answer, upload) = match answer {
        Value::Nil => (None, None),
        Value::BulkString(bytes) => {
            let (answer, upload) = kept(bytes.into(), pieces).ok_or_else(unclear)?;
            (Some(answer), upload)
        }
        _ => return Err(unclear()),
    };
    // Below zero there is none.
    let in_flight = u64::try_from(*left).ok().map(Duration::from_millis);
    Ok((Look { answer, in_flight }, upload))
}

fn kept(bytes: Bytes, pieces: &Arc<dyn Pieces>) -> Option<(Answer, Option<String>)> {
    let (what, rest) = bytes.split_first()?;
    let etag = Etag::from_bytes(*rest.first_chunk()?);
    let rest = bytes.slice(HEAD..);
    let (body, upload) = if what & IN_PIECES == 0 {
        (AnswerBody::Bytes(rest), None)
    } else {
        let (upload, length) = rest.split_at_checked(UPLOAD)?;
        let upload = str::from_utf8(upload).ok()?;
        let length = u64::from_be_bytes(*length.first_chunk::<LENGTH>()?);
        let pieced = Pieced::new(pieces.clone(), upload.parse().ok()?, length);
        (AnswerBody::Pieces(pieced), Some(upload.to_owned()))
    };
    let answer = Answer {
        is_error: what & PROBLEM != 0,
        etag: etag.to_string(),
        body,
    };
    Some((answer, upload))
}

/// With the time at which it was asked.
pub(super) fn asked(key: Key, mark: &[u8]) -> Option<(u64, Request)> {
    let (token, rest) = mark.split_at_checked(TOKEN)?;
    let (time, params) = rest.split_at_checked(TIME)?;
    let request = Request {
        key,
        token: Uuid::from_slice(token).ok()?,
        params: String::from_utf8(params.to_vec()).ok()?,
    };
    Some((str::from_utf8(time).ok()?.parse().ok()?, request))
}

/// Somebody else writes under the same prefix.
pub(super) fn unclear() -> Error {
    Error::Failed("Redis: a value under this prefix is not one of ours".into())
}
