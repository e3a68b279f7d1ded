//! The answers of providers and the locks on requests on PostgreSQL. Each write is a statement by
//! itself: there is no flush to disk that a group could share, no caller waits behind another's large
//! answer, and two nodes that send the same requests in another order do not wait for each other.

use std::{collections::HashMap, time::Duration};

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};

use super::{PostgresStore, rows};
use crate::{
    provider::{AnswerKey, ProviderRequest},
    results::{
        AnswerContent, AnswerState, CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, MAX_IN_FLIGHT, ReadyCheck,
        ResultBackend, SWEPT_AT_ONCE, Upload, UploadOutcome, lasting, left, receive,
    },
    store::{Query, Row, StoreFuture, only, values_of},
    topic, wakes,
};

impl ResultBackend for PostgresStore {
    fn is_store(&self) -> bool {
        true
    }

    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        async move {
            // A key that several readers ask for is sent once.
            let mut places: HashMap<&AnswerKey, usize> = HashMap::new();
            let (mut providers, mut versions, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
            for key in &keys {
                places.entry(key).or_insert_with(|| {
                    providers.push(key.provider);
                    versions.push(key.version);
                    hashes.push(key.hash.clone());
                    hashes.len() - 1
                });
            }
            let statement = "SELECT * FROM wakeline.jobs_result_find($1, $2, $3)";
            let rows = self.rows(
                "find_results",
                statement,
                values_of![providers, versions, hashes],
            );
            let rows = rows.await?;
            let looks: Vec<AnswerState> = rows
                .iter()
                .map(|row| AnswerState::from_row(row, &self.chunks))
                .collect();
            Ok(keys.iter().map(|key| looks[places[key]].clone()).collect())
        }
        .boxed()
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        let providers: Vec<Uuid> = at.iter().map(|check| check.provider).collect();
        let versions: Vec<i64> = at.iter().map(|check| check.version).collect();
        let hashes: Vec<Option<String>> = at.into_iter().map(|check| check.hash).collect();
        let statement = "SELECT ready FROM wakeline.jobs_result_ready($1, $2, $3) AS ready";
        let rows = self.rows(
            "ready_results",
            statement,
            values_of![providers, versions, hashes],
        );
        async move { Ok(rows.await?.iter().map(|row| row.get("ready")).collect()) }.boxed()
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        let (postgres, chunks) = (self.postgres.clone(), self.chunks.clone());
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*chunks, upload, Vec::new()).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let etag = came.etag.to_string();
            let (body, upload, length) = match came.content {
                AnswerContent::Whole(body) => (body, None, None),
                AnswerContent::Chunks { upload, length, .. } => {
                    (Vec::new(), Some(upload), Some(length))
                }
            };
            let statement = "SELECT wakeline.jobs_result_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stored";
            let parameters = values_of![
                key.provider,
                key.version,
                key.hash,
                is_error,
                etag,
                bytes::Bytes::from(body),
                lasting(ttl),
                upload,
                length,
                lasting(CHUNK_GRACE),
            ];
            let rows = rows(&postgres, "put_result", statement, &parameters).await?;
            Ok(UploadOutcome::stored_if(only(&rows)?.get("stored")))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        let ProviderRequest { key, token, params } = request;
        self.write_alone(
            "lock_request",
            "SELECT wakeline.jobs_inflight_lock($1, $2, $3, $4, $5, $6) AS locked",
            values_of![
                key.provider,
                key.version,
                key.hash,
                token,
                params,
                lasting(ttl)
            ],
            wakes::nobody,
            |rows| Ok(only(rows)?.get("locked")),
        )
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.write_alone(
            "unlock_request",
            "DELETE FROM wakeline.jobs_inflight WHERE provider_id = $1 AND version = $2
             AND hash = $3 AND ($4 IS NULL OR token = $4)",
            values_of![key.provider, key.version, key.hash, token],
            |()| readers,
            |_| Ok(()),
        )
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        let statement = "SELECT hash, token, params FROM wakeline.jobs_inflight
            WHERE provider_id = $1 AND version = $2 AND expires_at > wakeline.jobs_now()
            ORDER BY created_at, hash LIMIT $3";
        let limit = i64::try_from(MAX_IN_FLIGHT).unwrap_or(i64::MAX);
        let rows = self.rows("in_flight", statement, values_of![provider, version, limit]);
        let read = move |row: &Row| ProviderRequest::from_row(row, provider, version);
        async move { Ok(rows.await?.iter().map(read).collect()) }.boxed()
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        self.write_alone(
            "forget_results",
            "WITH answers AS (
                 DELETE FROM wakeline.jobs_result
                 WHERE provider_id = $1 AND ($2 IS NULL OR version < $2) RETURNING upload_id
             ), freed AS (
                 UPDATE wakeline.jobs_upload u
                 SET expires_at = least(u.expires_at, wakeline.jobs_now() + $3)
                 FROM answers a WHERE u.id = a.upload_id
             )
             DELETE FROM wakeline.jobs_inflight
             WHERE provider_id = $1 AND ($2 IS NULL OR version < $2)",
            values_of![provider, version, lasting(CHUNK_GRACE)],
            wakes::nobody,
            |_| Ok(()),
        )
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        self.write_alone(
            "sweep_results",
            "SELECT wakeline.jobs_result_sweep($1, $2) AS next",
            values_of![SWEPT_AT_ONCE, CHUNKS_REMOVED_AT_ONCE],
            wakes::nobody,
            |rows| Ok(only(rows)?.get::<Option<i64>>("next").map(left)),
        )
    }
}
