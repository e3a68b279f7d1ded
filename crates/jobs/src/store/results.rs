//! The rows of answers and of requests in flight, the same on both databases.

use std::sync::Arc;

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};

use super::{Commit, Query, Row, StoreFuture, values_of, write};
use crate::{
    provider::{Answer, AnswerBody, AnswerKey, ProviderRequest},
    results::{AnswerState, ChunkStore, ChunkedAnswer, MAX_IN_FLIGHT, left},
};

/// [`ResultBackend::end`](crate::results::ResultBackend::end) on both databases.
pub(super) fn end(
    store: &impl Query,
    key: AnswerKey,
    token: Option<Uuid>,
    readers: Wakes,
) -> Write<()> {
    let statement = "DELETE FROM wakeline.jobs_inflight WHERE provider_id = $1 AND version = $2
        AND hash = $3 AND ($4 IS NULL OR token = $4)";
    let parameters = values_of![key.provider, key.version, key.hash, token];
    let commit = Commit::Alone("unlock_request");
    write(
        store,
        commit,
        statement,
        parameters,
        |()| readers,
        |_| Ok(()),
    )
}

/// [`ResultBackend::in_flight`](crate::results::ResultBackend::in_flight) on both databases.
pub(super) fn in_flight(
    store: &impl Query,
    provider: Uuid,
    version: i64,
) -> StoreFuture<'_, Vec<ProviderRequest>> {
    let statement = "SELECT * FROM wakeline.jobs_inflight
        WHERE provider_id = $1 AND version = $2 AND expires_at > {now}
        ORDER BY created_at, hash LIMIT $3";
    let limit = i64::try_from(MAX_IN_FLIGHT).unwrap_or(i64::MAX);
    let rows = store.rows("in_flight", statement, values_of![provider, version, limit]);
    async move { Ok(rows.await?.iter().map(ProviderRequest::from_row).collect()) }.boxed()
}

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
    fn from_row(row: &Row) -> Self {
        Self {
            key: AnswerKey {
                provider: row.get("provider_id"),
                version: row.get("version"),
                hash: row.get("hash"),
            },
            token: row.get("token"),
            params: row.get("params"),
        }
    }
}
