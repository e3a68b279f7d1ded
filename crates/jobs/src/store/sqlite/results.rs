//! The answers of providers and the locks on requests on SQLite.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::{Result, SqliteStore, chunks, rows};
use crate::{
    provider::{AnswerKey, ProviderRequest},
    results::{
        AnswerContent, AnswerState, ChunkStore, MAX_IN_FLIGHT, ReadyCheck, ResultBackend,
        SWEPT_AT_ONCE, Upload, UploadOutcome, lasting, left, receive,
    },
    store::{Row, StoreFuture, only, values_of},
    topic, wakes,
};

impl ResultBackend for SqliteStore {
    fn is_store(&self) -> bool {
        true
    }

    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        let chunks = self.chunks.clone();
        self.read("find_results", move |connection, now| {
            let mut known: HashMap<&AnswerKey, AnswerState> = HashMap::new();
            for key in &keys {
                if !known.contains_key(key) {
                    known.insert(key, look(connection, key, now, &chunks)?);
                }
            }
            Ok(keys.iter().map(|key| known[key].clone()).collect())
        })
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        self.read("ready_results", move |connection, now| {
            let mut one = connection.prepare_cached(
                "SELECT EXISTS (
                    SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?4
                ) OR NOT EXISTS (
                    SELECT 1 FROM jobs_inflight WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?4
                )",
            )?;
            let mut any = connection.prepare_cached(
                "SELECT EXISTS (
                    SELECT 1 FROM jobs_inflight WHERE provider_id = ?1 AND version = ?2 AND expires_at > ?3
                )",
            )?;
            let mut ready = Vec::with_capacity(at.len());
            for check in at {
                let (provider, version) = (check.provider, check.version);
                ready.push(match check.hash {
                    Some(hash) => {
                        one.query_row(params![provider, version, hash, now], |row| row.get(0))?
                    }
                    None => any.query_row(params![provider, version, now], |row| row.get(0))?,
                });
            }
            Ok(ready)
        })
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        let (sqlite, clock, chunks) =
            (self.sqlite.clone(), self.clock.clone(), self.chunks.clone());
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*chunks, upload, Vec::new()).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let is_there = sqlite.write("put_result", move |connection| {
                let now = clock();
                let (body, chunks, length) = match &came.content {
                    AnswerContent::Whole(body) => (&body[..], None, None),
                    AnswerContent::Chunks { upload, length, .. } => {
                        (&[][..], Some(*upload), Some(*length))
                    }
                };
                let expires_at = now + lasting(ttl);
                if let Some(upload) = chunks
                    && !chunks::keep(connection, upload, now, expires_at)?
                {
                    return Ok(false);
                }
                free(connection, &key, now)?;
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO jobs_result
                            (provider_id, version, hash, is_error, etag, expires_at, upload_id,
                                length, body)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    )?
                    .execute(params![
                        key.provider,
                        key.version,
                        key.hash,
                        is_error,
                        came.etag.to_string(),
                        expires_at,
                        chunks,
                        length,
                        body
                    ])?;
                unmark(connection, &key, None)?;
                Ok::<_, Error>(true)
            });
            Ok(UploadOutcome::stored_if(is_there.await?))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        self.write("lock_request", wakes::nobody, move |connection, now| {
            let ProviderRequest { key, token, params } = request;
            let marked = connection
                .prepare_cached(
                    "INSERT INTO jobs_inflight
                        (provider_id, version, hash, token, params, expires_at, created_at)
                    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
                        SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                            AND hash = ?3 AND expires_at > ?7
                    )
                    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
                        token = excluded.token, params = excluded.params, expires_at = excluded.expires_at,
                        created_at = excluded.created_at
                    WHERE jobs_inflight.expires_at <= ?7 OR token = ?4",
                )?
                .execute(params![
                    key.provider,
                    key.version,
                    key.hash,
                    token,
                    params,
                    now + lasting(ttl),
                    now
                ])?;
            Ok(marked == 1)
        })
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.write(
            "unlock_request",
            |()| readers,
            move |connection, _| unmark(connection, &key, token),
        )
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        self.read("in_flight", move |connection, now| {
            let statement = "SELECT hash, token, params FROM jobs_inflight
                WHERE provider_id = $1 AND version = $2 AND expires_at > $3
                ORDER BY created_at, hash LIMIT $4";
            let limit = i64::try_from(MAX_IN_FLIGHT).unwrap_or(i64::MAX);
            let rows = rows(
                connection,
                statement,
                values_of![provider, version, now, limit],
            )?;
            let read = |row: &Row| ProviderRequest::from_row(row, provider, version);
            Ok(rows.iter().map(read).collect())
        })
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        self.write("forget_results", wakes::nobody, move |connection, now| {
            let uploads = connection
                .prepare_cached(
                    "SELECT upload_id FROM jobs_result
                    WHERE provider_id = ?1 AND (?2 IS NULL OR version < ?2)
                        AND upload_id IS NOT NULL",
                )?
                .query_map(params![provider, version], |row| row.get("upload_id"))?
                .collect::<rusqlite::Result<Vec<Uuid>>>()?;
            for upload in uploads {
                chunks::free(connection, upload, now)?;
            }
            for table in ["jobs_result", "jobs_inflight"] {
                connection
                    .prepare_cached(&format!(
                        "DELETE FROM {table}
                        WHERE provider_id = ?1 AND (?2 IS NULL OR version < ?2)"
                    ))?
                    .execute(params![provider, version])?;
            }
            Ok(())
        })
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        self.write("sweep_results", wakes::nobody, move |connection, now| {
            connection
                .prepare_cached(
                    "DELETE FROM jobs_result WHERE rowid IN (
                        SELECT rowid FROM jobs_result WHERE expires_at <= ?1
                        ORDER BY expires_at LIMIT ?2
                    )",
                )?
                .execute([now, SWEPT_AT_ONCE])?;
            connection
                .prepare_cached(
                    "DELETE FROM jobs_inflight WHERE (provider_id, version, hash) IN (
                        SELECT provider_id, version, hash FROM jobs_inflight WHERE expires_at <= ?1
                        ORDER BY expires_at LIMIT ?2
                    )",
                )?
                .execute([now, SWEPT_AT_ONCE])?;
            chunks::sweep(connection, now)?;
            let next: Option<i64> = connection
                .prepare_cached(
                    "SELECT min(expiry) AS next FROM (
                        SELECT min(expires_at) AS expiry FROM jobs_result
                        UNION ALL SELECT min(expires_at) FROM jobs_inflight
                        UNION ALL SELECT min(expires_at) FROM jobs_upload
                    )",
                )?
                .query_row([], |row| row.get("next"))?;
            Ok(next.map(|at| left(at - now)))
        })
    }
}

pub(super) fn look(
    connection: &Connection,
    key: &AnswerKey,
    now: i64,
    chunks: &Arc<dyn ChunkStore>,
) -> Result<AnswerState> {
    let statement = "SELECT r.is_error, r.etag, r.body, r.upload_id, r.length,
            m.expires_at - $4 AS in_flight
        FROM (SELECT 1) one
        LEFT JOIN jobs_result r ON r.provider_id = $1 AND r.version = $2 AND r.hash = $3
            AND r.expires_at > $4
        LEFT JOIN jobs_inflight m ON m.provider_id = $1 AND m.version = $2 AND m.hash = $3
            AND m.expires_at > $4";
    let parameters = values_of![key.provider, key.version, key.hash.clone(), now];
    let rows = rows(connection, statement, parameters)?;
    Ok(AnswerState::from_row(only(&rows)?, chunks))
}

/// Leaves the chunks of an answer that is replaced to their readers for a while.
fn free(connection: &Connection, key: &AnswerKey, now: i64) -> Result<()> {
    let upload = connection
        .prepare_cached(
            "SELECT upload_id FROM jobs_result
            WHERE provider_id = ?1 AND version = ?2 AND hash = ?3",
        )?
        .query_row(params![key.provider, key.version, key.hash], |row| {
            row.get("upload_id")
        })
        .optional()?;
    match upload.flatten() {
        Some(upload) => chunks::free(connection, upload, now),
        None => Ok(()),
    }
}

fn unmark(connection: &Connection, key: &AnswerKey, token: Option<Uuid>) -> Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM jobs_inflight WHERE provider_id = ?1 AND version = ?2 AND hash = ?3
                AND (?4 IS NULL OR token = ?4)",
        )?
        .execute(params![key.provider, key.version, key.hash, token])?;
    Ok(())
}
