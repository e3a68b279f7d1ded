//! Answers and marks of providers on SQLite.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;

use super::{SqliteStore, pieces};
use crate::{
    provider::{Answer, AnswerBody, Key, Request},
    results::{
        Content, Glance, Kept, Look, MAX_IN_FLIGHT, Pieced, Pieces, Results, SWEPT_AT_ONCE, Upload,
        lasting, left, receive,
    },
    store::Step,
    topic, wakes,
};

impl Results for SqliteStore {
    fn is_store(&self) -> bool {
        true
    }

    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        let pieces = self.pieces.clone();
        self.read("look", move |connection, now| {
            let mut known: HashMap<&Key, Look> = HashMap::new();
            for key in &keys {
                if !known.contains_key(key) {
                    known.insert(key, seen(connection, key, now, &pieces)?);
                }
            }
            Ok(keys.iter().map(|key| known[key].clone()).collect())
        })
    }

    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>> {
        self.read("glance", move |connection, now| {
            let mut one = connection.prepare_cached(
                "SELECT EXISTS (
                    SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND expires_at > ?4
                ) OR NOT EXISTS (
                    SELECT 1 FROM jobs_mark WHERE provider_id = ?1 AND version = ?2
                        AND hash = ?3 AND until > ?4
                )",
            )?;
            let mut any = connection.prepare_cached(
                "SELECT EXISTS (
                    SELECT 1 FROM jobs_mark WHERE provider_id = ?1 AND version = ?2 AND until > ?3
                )",
            )?;
            at.iter()
                .map(
                    |Glance {
                         provider,
                         version,
                         hash,
                     }| match hash {
                        Some(hash) => {
                            one.query_row(params![provider, version, hash, now], |row| row.get(0))
                        }
                        None => any.query_row(params![provider, version, now], |row| row.get(0)),
                    },
                )
                .collect()
        })
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept> {
        let (sqlite, clock, pieces) =
            (self.sqlite.clone(), self.clock.clone(), self.pieces.clone());
        let run = async move {
            let is_error = upload.is_error;
            let came = match receive(&*pieces, upload, Vec::new()).await? {
                Ok(came) => came,
                Err(kept) => return Ok(kept),
            };
            let is_there = sqlite.write("put_result", move |connection| {
                let now = clock();
                let (body, pieces, length) = match &came.content {
                    Content::Whole(body) => (&body[..], None, None),
                    Content::Pieces { upload, length, .. } => {
                        (&[][..], Some(*upload), Some(*length))
                    }
                };
                let expires_at = now + lasting(ttl);
                if let Some(upload) = pieces
                    && !pieces::keep(connection, upload, now, expires_at)?
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
                        pieces,
                        length,
                        body
                    ])?;
                unmark(connection, &key, None)?;
                Ok::<_, Error>(true)
            });
            Ok(Kept::if_there(is_there.await?))
        };
        Write::new(topic::DOOR, run, wakes::kept(readers))
    }

    fn begin(&self, request: Request, ttl: Duration) -> Write<bool> {
        self.write("begin_request", wakes::nobody, move |connection, now| {
            let Request { key, token, params } = request;
            let marked = connection
                .prepare_cached(
                    "INSERT INTO jobs_mark
                        (provider_id, version, hash, token, params, until, created_at)
                    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (
                        SELECT 1 FROM jobs_result WHERE provider_id = ?1 AND version = ?2
                            AND hash = ?3 AND expires_at > ?7
                    )
                    ON CONFLICT (provider_id, version, hash) DO UPDATE SET
                        token = excluded.token, params = excluded.params, until = excluded.until,
                        created_at = excluded.created_at
                    WHERE until <= ?7 OR token = ?4",
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

    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.write(
            "end_request",
            |()| readers,
            move |connection, _| unmark(connection, &key, token),
        )
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        self.read("in_flight", move |connection, now| {
            let mut statement = connection.prepare_cached(
                "SELECT hash, token, params FROM jobs_mark
                WHERE provider_id = ?1 AND version = ?2 AND until > ?3
                ORDER BY created_at, hash LIMIT ?4",
            )?;
            let limit = i64::try_from(MAX_IN_FLIGHT).unwrap_or(i64::MAX);
            let requests = statement.query_map(params![provider, version, now, limit], |row| {
                Ok(Request {
                    key: Key {
                        provider,
                        version,
                        hash: row.get(0)?,
                    },
                    token: row.get(1)?,
                    params: row.get(2)?,
                })
            })?;
            requests.collect()
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
                .query_map(params![provider, version], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<Uuid>>>()?;
            for upload in uploads {
                pieces::free(connection, upload, now)?;
            }
            for table in ["jobs_result", "jobs_mark"] {
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
                    "DELETE FROM jobs_mark WHERE (provider_id, version, hash) IN (
                        SELECT provider_id, version, hash FROM jobs_mark WHERE until <= ?1
                        ORDER BY until LIMIT ?2
                    )",
                )?
                .execute([now, SWEPT_AT_ONCE])?;
            pieces::sweep(connection, now)?;
            let next: Option<i64> = connection
                .prepare_cached(
                    "SELECT min(at) FROM (
                        SELECT min(expires_at) AS at FROM jobs_result
                        UNION ALL SELECT min(until) FROM jobs_mark
                        UNION ALL SELECT min(expires_at) FROM jobs_upload
                    )",
                )?
                .query_row([], |row| row.get(0))?;
            Ok(next.map(|at| left(at - now)))
        })
    }
}

pub(super) fn seen(
    connection: &Connection,
    key: &Key,
    now: i64,
    pieces: &Arc<dyn Pieces>,
) -> rusqlite::Result<Look> {
    connection
        .prepare_cached(
            "SELECT r.is_error, r.etag, r.body, m.until, r.upload_id, r.length
            FROM (SELECT 1) one
            LEFT JOIN jobs_result r ON r.provider_id = ?1 AND r.version = ?2 AND r.hash = ?3
                AND r.expires_at > ?4
            LEFT JOIN jobs_mark m ON m.provider_id = ?1 AND m.version = ?2 AND m.hash = ?3
                AND m.until > ?4",
        )?
        .query_row(params![key.provider, key.version, key.hash, now], |row| {
            let is_error: Option<bool> = row.get(0)?;
            let answer = match is_error {
                None => None,
                Some(is_error) => Some(Answer {
                    is_error,
                    etag: row.get(1)?,
                    body: match row.get(4)? {
                        None => AnswerBody::Bytes(Bytes::from(row.get::<_, Vec<u8>>(2)?)),
                        Some(upload) => {
                            let length = row.get::<_, i64>(5)?.unsigned_abs();
                            AnswerBody::Pieces(Pieced::new(pieces.clone(), upload, length))
                        }
                    },
                }),
            };
            let until: Option<i64> = row.get(3)?;
            Ok(Look {
                answer,
                in_flight: until.map(|until| left(until - now)),
            })
        })
}

/// Leaves the pieces of what is to be replaced to those who read them.
fn free(connection: &Connection, key: &Key, now: i64) -> rusqlite::Result<()> {
    let upload = connection
        .prepare_cached(
            "SELECT upload_id FROM jobs_result
            WHERE provider_id = ?1 AND version = ?2 AND hash = ?3",
        )?
        .query_row(params![key.provider, key.version, key.hash], |row| {
            row.get(0)
        })
        .optional()?;
    match upload.flatten() {
        Some(upload) => pieces::free(connection, upload, now),
        None => Ok(()),
    }
}

fn unmark(connection: &Connection, key: &Key, token: Option<Uuid>) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM jobs_mark WHERE provider_id = ?1 AND version = ?2 AND hash = ?3
                AND (?4 IS NULL OR token = ?4)",
        )?
        .execute(params![key.provider, key.version, key.hash, token])?;
    Ok(())
}
