//! Chunks of large answers on SQLite. Each is a turn of the writer, so that no write waits long
//! behind a large answer.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use rusqlite::params;
use uuid::Uuid;

use super::{Result, Session, TimedSqlite};
use crate::{
    results::{CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, ChunkStore, lasting},
    store::{Row, StoreFuture, values_of},
};

#[derive(Debug)]
pub(super) struct SqliteChunks(pub(super) TimedSqlite);

impl ChunkStore for SqliteChunks {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> StoreFuture<'_, bool> {
        let added = self.0.write("add_chunk", move |session| {
            let until = session.now + lasting(ttl);
            if number == 0 {
                let sql = "INSERT INTO jobs_upload (id, expires_at) VALUES (?1, ?2)";
                session.execute(sql, params![upload, until])?;
            } else if !extend(session, upload, until)? {
                return Ok(false);
            }
            let sql = "INSERT INTO jobs_chunk (upload_id, number, body) VALUES (?1, ?2, ?3)";
            session.execute(sql, params![upload, number, &bytes[..]])?;
            Ok(true)
        });
        added.boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> StoreFuture<'_, Option<Bytes>> {
        async move {
            let read = self.0.read("get_chunk", move |session| {
                let sql = "SELECT p.body, ifnull(u.expires_at < $3, 0) AS is_near FROM jobs_chunk p
                    LEFT JOIN jobs_upload u ON u.id = p.upload_id
                    WHERE p.upload_id = $1 AND p.number = $2";
                let near = session.now + lasting(CHUNK_GRACE) / 2;
                let rows = session.rows(sql, values_of![upload, number, near])?;
                let chunk = |row: &Row| (row.get("body"), row.get::<bool>("is_near"));
                Ok(rows.first().map(chunk))
            });
            let Some((body, is_near)) = read.await? else {
                return Ok(None);
            };
            if is_near {
                // For the reader.
                let kept = self.0.write("keep_chunks", move |session| {
                    keep(session, upload, session.now)
                });
                kept.await?;
            }
            Ok(Some(body))
        }
        .boxed()
    }

    fn remove(&self, upload: Uuid) -> StoreFuture<'_, bool> {
        let removed = self.0.write("remove_chunks", move |session| {
            Ok(remove(session, upload, CHUNKS_REMOVED_AT_ONCE)? == 0)
        });
        removed.boxed()
    }
}

/// Keeps chunks as long as an answer, and for its last readers. Returns whether they are there.
pub(super) fn keep(session: &Session<'_>, upload: Uuid, answer_expires_at: i64) -> Result<bool> {
    extend(session, upload, answer_expires_at + lasting(CHUNK_GRACE))
}

fn extend(session: &Session<'_>, upload: Uuid, until: i64) -> Result<bool> {
    let sql = "UPDATE jobs_upload SET expires_at = ?2 WHERE id = ?1 AND expires_at > ?3";
    Ok(session.execute(sql, params![upload, until, session.now])? == 1)
}

/// Leaves the chunks of a removed answer to their readers for a while.
pub(super) fn free(session: &Session<'_>, upload: Uuid) -> Result<()> {
    let sql = "UPDATE jobs_upload SET expires_at = min(expires_at, ?2) WHERE id = ?1";
    let until = session.now + lasting(CHUNK_GRACE);
    session.execute(sql, params![upload, until]).map(drop)
}

/// Removes a slice of the expired chunks.
pub(super) fn sweep(session: &Session<'_>) -> Result<()> {
    let sql = "SELECT id FROM jobs_upload WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 1";
    let mut more = CHUNKS_REMOVED_AT_ONCE;
    while more > 0
        && let Some(upload) = session.optional(sql, [session.now])?
    {
        more = remove(session, upload, more)?;
    }
    Ok(())
}

/// Returns how many more chunks could have been removed: with 0 there may be more.
fn remove(session: &Session<'_>, upload: Uuid, slice: i64) -> Result<i64> {
    let sql = "DELETE FROM jobs_chunk WHERE rowid IN (
            SELECT rowid FROM jobs_chunk WHERE upload_id = ?1 ORDER BY number LIMIT ?2
        )";
    let removed = session.execute(sql, params![upload, slice])?;
    let left = slice - i64::try_from(removed).unwrap_or(slice);
    // An upload that has lost a chunk is not extended, not continued, and not put into an answer.
    let sql = if left > 0 {
        "DELETE FROM jobs_upload WHERE id = ?1"
    } else {
        "UPDATE jobs_upload SET expires_at = 0 WHERE id = ?1"
    };
    session.execute(sql, [upload])?;
    Ok(left)
}
