//! The rows of answers and of requests in flight, the same on both databases.

use std::sync::Arc;

use uuid::Uuid;

use super::Row;
use crate::{
    provider::{Answer, AnswerBody, AnswerKey, ProviderRequest},
    results::{AnswerState, ChunkStore, ChunkedAnswer, left},
};

impl AnswerState {
    /// From a row with the columns of an answer, and how long its request is `in_flight`.
    pub(super) fn from_row(row: &Row, chunks: &Arc<dyn ChunkStore>) -> Self {
        let is_error: Option<bool> = row.get("is_error");
        let in_flight: Option<i64> = row.get("in_flight");
        Self {
            answer: is_error.map(|is_error| Answer {
                is_error,
                etag: row.get("etag"),
                body: match row.get("upload_id") {
                    None => AnswerBody::Bytes(row.get("body")),
                    Some(upload) => {
                        let length = row.get::<i64>("length").unsigned_abs();
                        AnswerBody::Chunks(ChunkedAnswer::new(chunks.clone(), upload, length))
                    }
                },
            }),
            in_flight: in_flight.map(left),
        }
    }
}

impl ProviderRequest {
    /// From a row of `jobs_inflight`.
    pub(super) fn from_row(row: &Row, provider: Uuid, version: i64) -> Self {
        Self {
            key: AnswerKey {
                provider,
                version,
                hash: row.get("hash"),
            },
            token: row.get("token"),
            params: row.get("params"),
        }
    }
}
