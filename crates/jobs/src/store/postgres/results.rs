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
        AnswerContent, AnswerState, CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, ReadyCheck, ResultBackend,
        SWEPT_AT_ONCE, Upload, UploadOutcome, lasting, left, receive,
    },
    store::{
        Commit, Query, StoreFuture, only,
        results::{end, in_flight},
        values_of, write,
    },
    topic, wakes,
};

/// Each request is named by its provider's name, or by its provider's id and registration.
pub(super) const ANSWERS: &str =
    "SELECT (provider).*, is_error, etag, body, upload_id, length, in_flight
    FROM wakeline.jobs_answers($1, $2, $3, $4, $5, $6)";

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
            let unnamed = Vec::<String>::new;
            let (rooms, categories, names) = (unnamed(), unnamed(), unnamed());
            let parameters = values_of![rooms, categories, names, providers, versions, hashes];
            let rows = self.rows("find_results", ANSWERS, parameters).await?;
            let state = |row| AnswerState::from_row(row, &self.chunks);
            let states: Vec<AnswerState> = rows.iter().map(state).collect();
            Ok(keys.iter().map(|key| states[places[key]].clone()).collect())
        }
        .boxed()
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        let providers: Vec<Uuid> = at.iter().map(|check| check.provider).collect();
        let versions: Vec<i64> = at.iter().map(|check| check.version).collect();
        let hashes: Vec<Option<String>> = at.into_iter().map(|check| check.hash).collect();
        let statement = "SELECT ready FROM wakeline.jobs_result_ready($1, $2, $3) AS ready";
        let parameters = values_of![providers, versions, hashes];
        let rows = self.rows("ready_results", statement, parameters);
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
            let received = match receive(&*chunks, upload, Vec::new()).await? {
                Ok(received) => received,
                Err(refused) => return Ok(refused),
            };
            let etag = received.etag.to_string();
            let (body, upload, length) = match received.content {
                AnswerContent::Whole(body) => (body, None, None),
                AnswerContent::Chunks { upload, length, .. } => {
                    (Vec::new(), Some(upload), Some(length))
                }
            };
            let statement = "SELECT wakeline.jobs_result_put(
                $1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS stored";
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
        write(
            self,
            Commit::Alone("lock_request"),
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
        end(self, key, token, readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        in_flight(self, provider, version)
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        write(
            self,
            Commit::Alone("forget_results"),
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
        write(
            self,
            Commit::Alone("sweep_results"),
            "SELECT wakeline.jobs_result_sweep($1, $2) AS next",
            values_of![SWEPT_AT_ONCE, CHUNKS_REMOVED_AT_ONCE],
            wakes::nobody,
            |rows| Ok(only(rows)?.get::<Option<i64>>("next").map(left)),
        )
    }
}
