//! The answers of providers and the locks on requests on SQLite.

use std::{collections::HashMap, sync::Arc, time::Duration};

use rusqlite::params;
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};

use super::{Result, Session, SqliteStore, chunks};
use crate::{
    provider::{AnswerKey, ProviderRequest},
    results::{
        AnswerContent, AnswerState, ChunkStore, ReadyCheck, ResultBackend, SWEPT_AT_ONCE, Upload,
        UploadOutcome, lasting, left, receive,
    },
    store::{
        StoreFuture, only,
        results::{end, in_flight},
        values_of,
    },
    topic, wakes,
};

impl ResultBackend for SqliteStore {
    fn is_store(&self) -> bool {
        true
    }

    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        let chunks = self.chunks.clone();
        self.read("find_results", move |session| {
            let mut known: HashMap<&AnswerKey, AnswerState> = HashMap::new();
            for key in &keys {
                if !known.contains_key(key) {
                    known.insert(key, answer_state(session, key, &chunks)?);
                }
            }
            Ok(keys.iter().map(|key| known[key].clone()).collect())
        })
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        self.read("ready_results", move |session| {
            // Without a hash: is any request of the provider in flight?
            let sql = "SELECT CASE WHEN ?3 IS NULL THEN EXISTS (
                    SELECT 1 FROM jobs_inflight WHERE provider_id = ?1 AND version = ?2
                        AND expires_at > ?4
                ) ELSE EXISTS (
                    SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?4
                ) OR NOT EXISTS (
                    SELECT 1 FROM jobs_inflight WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?4
                ) END";
            let now = session.now;
            let is_ready = |check: &ReadyCheck| {
                let at = params![check.provider, check.version, check.hash, now];
                session.value(sql, at)
            };
            at.iter().map(is_ready).collect()
        })
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        let (sqlite, chunks) = (self.sqlite.clone(), self.chunks.clone());
        let run = async move {
            let is_error = upload.is_error;
            let received = match receive(&*chunks, upload, Vec::new()).await? {
                Ok(received) => received,
                Err(refused) => return Ok(refused),
            };
            let is_stored = sqlite.write("put_result", move |session| {
                let (body, upload, length) = match &received.content {
                    AnswerContent::Whole(body) => (&body[..], None, None),
                    AnswerContent::Chunks { upload, length, .. } => {
                        (&[][..], Some(*upload), Some(*length))
                    }
                };
                let expires_at = session.now + lasting(ttl);
                if let Some(upload) = upload
                    && !chunks::keep(session, upload, expires_at)?
                {
                    return Ok(false);
                }
                free_replaced(session, &key)?;
                session.execute(
                    "INSERT OR REPLACE INTO jobs_result
                        (provider_id, version, hash, is_error, etag, expires_at, upload_id,
                            length, body)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        key.provider,
                        key.version,
                        key.hash,
                        is_error,
                        received.etag.to_string(),
                        expires_at,
                        upload,
                        length,
                        body
                    ],
                )?;
                let sql = "DELETE FROM jobs_inflight
                    WHERE provider_id = ?1 AND version = ?2 AND hash = ?3";
                session.execute(sql, params![key.provider, key.version, key.hash])?;
                Ok(true)
            });
            Ok(UploadOutcome::stored_if(is_stored.await?))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        self.write("lock_request", wakes::nobody, move |session| {
            let (ProviderRequest { key, token, params }, now) = (request, session.now);
            let sql = "INSERT INTO jobs_inflight
                    (provider_id, version, hash, token, params, expires_at, created_at)
                SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
                    SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?7
                )
                ON CONFLICT (provider_id, version, hash) DO UPDATE SET
                    token = excluded.token, params = excluded.params,
                    expires_at = excluded.expires_at, created_at = excluded.created_at
                WHERE jobs_inflight.expires_at <= ?7 OR token = ?4";
            let (provider, version, hash) = (key.provider, key.version, key.hash);
            let until = now + lasting(ttl);
            let values = params![provider, version, hash, token, params, until, now];
            Ok(session.execute(sql, values)? == 1)
        })
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        end(self, key, token, readers)
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        in_flight(self, provider, version)
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        self.write("forget_results", wakes::nobody, move |session| {
            let sql = "SELECT upload_id FROM jobs_result
                WHERE provider_id = ?1 AND (?2 IS NULL OR version < ?2) AND upload_id IS NOT NULL";
            for upload in session.column(sql, params![provider, version])? {
                chunks::free(session, upload)?;
            }
            for table in ["jobs_result", "jobs_inflight"] {
                let sql = format!(
                    "DELETE FROM {table} WHERE provider_id = ?1 AND (?2 IS NULL OR version < ?2)"
                );
                session.execute(&sql, params![provider, version])?;
            }
            Ok(())
        })
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        self.write("sweep_results", wakes::nobody, move |session| {
            let sql = "DELETE FROM jobs_result WHERE rowid IN (
                    SELECT rowid FROM jobs_result WHERE expires_at <= ?1
                    ORDER BY expires_at LIMIT ?2
                )";
            session.execute(sql, [session.now, SWEPT_AT_ONCE])?;
            let sql = "DELETE FROM jobs_inflight WHERE (provider_id, version, hash) IN (
                    SELECT provider_id, version, hash FROM jobs_inflight WHERE expires_at <= ?1
                    ORDER BY expires_at LIMIT ?2
                )";
            session.execute(sql, [session.now, SWEPT_AT_ONCE])?;
            chunks::sweep(session)?;
            let sql = "SELECT min(expiry) FROM (
                    SELECT min(expires_at) AS expiry FROM jobs_result
                    UNION ALL SELECT min(expires_at) FROM jobs_inflight
                    UNION ALL SELECT min(expires_at) FROM jobs_upload
                )";
            let next: Option<i64> = session.value(sql, [])?;
            Ok(next.map(|at| left(at - session.now)))
        })
    }
}

pub(super) fn answer_state(
    session: &Session<'_>,
    key: &AnswerKey,
    chunks: &Arc<dyn ChunkStore>,
) -> Result<AnswerState> {
    let sql = "SELECT r.*, m.expires_at - {now} AS in_flight
        FROM (SELECT 1) one
        LEFT JOIN jobs_result r ON r.provider_id = $1 AND r.version = $2 AND r.hash = $3
            AND r.expires_at > {now}
        LEFT JOIN jobs_inflight m ON m.provider_id = $1 AND m.version = $2 AND m.hash = $3
            AND m.expires_at > {now}";
    let rows = session.rows(sql, values_of![key.provider, key.version, key.hash.clone()])?;
    Ok(AnswerState::from_row(only(&rows)?, chunks))
}

/// Leaves the chunks of an answer that is replaced to their readers for a while.
fn free_replaced(session: &Session<'_>, key: &AnswerKey) -> Result<()> {
    let sql = "SELECT upload_id FROM jobs_result
        WHERE provider_id = ?1 AND version = ?2 AND hash = ?3 AND upload_id IS NOT NULL";
    match session.optional(sql, params![key.provider, key.version, key.hash])? {
        Some(upload) => chunks::free(session, upload),
        None => Ok(()),
    }
}
