//! Answers and locks as the values of keys.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use redis::Value;
use uuid::Uuid;
use wakeline_store::Error;

use crate::{
    provider::{Answer, AnswerBody, AnswerKey, ProviderRequest},
    results::{AnswerState, ChunkStore, ChunkedAnswer, Etag},
};

/// Bytes before the answer's own: its flags and the ETag.
pub(super) const HEAD: usize = 1 + Etag::BYTES;
/// The flags.
const PROBLEM: u8 = 1;
const IN_CHUNKS: u8 = 2;
/// Of an answer in chunks, instead of the bytes: the upload's id as text, and the length.
const UPLOAD: usize = 32;
const LENGTH: usize = 8;
/// Before the parameters in a lock: the token, and the time in microseconds as digits.
const TOKEN: usize = 16;
const TIME: usize = 16;

/// Writes the head of a whole answer into the space before its bytes.
pub(super) fn head(bytes: &mut [u8], is_error: bool, etag: &Etag) {
    bytes[0] = u8::from(is_error) * PROBLEM;
    bytes[1..HEAD].copy_from_slice(etag.as_bytes());
}

pub(super) fn chunked_answer(is_error: bool, etag: &Etag, upload: &str, length: i64) -> Vec<u8> {
    let mut bytes = vec![0; HEAD];
    head(&mut bytes, is_error, etag);
    bytes[0] |= IN_CHUNKS;
    bytes.extend_from_slice(upload.as_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

/// Also returns the upload of an answer in chunks.
pub(super) fn answer_state(
    left: &Value,
    answer: Value,
    chunks: &Arc<dyn ChunkStore>,
) -> Result<(AnswerState, Option<String>), Error> {
    let Value::Int(left) = left else {
        return Err(not_ours());
    };
    let (answer, upload) = match answer {
        Value::Nil => (None, None),
        Value::BulkString(bytes) => {
            let (answer, upload) = parse_answer(bytes.into(), chunks).ok_or_else(not_ours)?;
            (Some(answer), upload)
        }
        _ => return Err(not_ours()),
    };
    // A negative number means that there is no lock.
    let in_flight = u64::try_from(*left).ok().map(Duration::from_millis);
    Ok((AnswerState { answer, in_flight }, upload))
}

fn parse_answer(bytes: Bytes, chunks: &Arc<dyn ChunkStore>) -> Option<(Answer, Option<String>)> {
    let (what, rest) = bytes.split_first()?;
    let etag = Etag::from_bytes(*rest.first_chunk()?);
    let rest = bytes.slice(HEAD..);
    let (body, upload) = if what & IN_CHUNKS == 0 {
        (AnswerBody::Bytes(rest), None)
    } else {
        let (upload, length) = rest.split_at_checked(UPLOAD)?;
        let upload = str::from_utf8(upload).ok()?;
        let length = u64::from_be_bytes(*length.first_chunk::<LENGTH>()?);
        let chunked = ChunkedAnswer::new(chunks.clone(), upload.parse().ok()?, length);
        (AnswerBody::Chunks(chunked), Some(upload.to_owned()))
    };
    let answer = Answer {
        is_error: what & PROBLEM != 0,
        etag: etag.to_string(),
        body,
    };
    Some((answer, upload))
}

/// Also returns the time when the request was sent.
pub(super) fn parse_request(key: AnswerKey, mark: &[u8]) -> Option<(u64, ProviderRequest)> {
    let (token, rest) = mark.split_at_checked(TOKEN)?;
    let (time, params) = rest.split_at_checked(TIME)?;
    let request = ProviderRequest {
        key,
        token: Uuid::from_slice(token).ok()?,
        params: String::from_utf8(params.to_vec()).ok()?,
    };
    Some((str::from_utf8(time).ok()?.parse().ok()?, request))
}

/// Another program writes under the same prefix.
pub(super) fn not_ours() -> Error {
    Error::Failed("Redis: a value under this prefix is not one of ours".into())
}
