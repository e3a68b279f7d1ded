//! Chunks of large answers on SQLite. Each is a turn of the writer, so that no write waits long
//! behind a large answer.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;
use wakeline_store::{Error, Sqlite};

use super::{Clock, Result};
use crate::{
    results::{CHUNK_GRACE, CHUNKS_REMOVED_AT_ONCE, ChunkStore, lasting},
    store::StoreFuture,
};

pub(super) struct SqliteChunks {
    sqlite: Sqlite,
    clock: Clock,
}

impl SqliteChunks {
    pub(super) fn new(sqlite: Sqlite, clock: Clock) -> Self {
        Self { sqlite, clock }
    }

    /// Extends the upload's time for its reader, if it expires soon.
    async fn keep_for_reader(&self, upload: Uuid) -> Result<()> {
        let clock = self.clock.clone();
        let kept = self.sqlite.write("keep_chunks", move |connection| {
            let now = clock();
            keep(connection, upload, now, now).map(drop)
        });
        kept.await
    }
}

impl fmt::Debug for SqliteChunks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteChunks").finish_non_exhaustive()
    }
}

impl ChunkStore for SqliteChunks {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> StoreFuture<'_, bool> {
        let clock = self.clock.clone();
        self.sqlite
            .write("add_chunk", move |connection| {
                let now = clock();
                let until = now + lasting(ttl);
                let going_on = if number == 0 {
                    connection
                        .prepare_cached("INSERT INTO jobs_upload (id, expires_at) VALUES (?1, ?2)")?
                        .execute(params![upload, until])?
                } else {
                    connection
                        .prepare_cached(
                            "UPDATE jobs_upload SET expires_at = ?2
                            WHERE id = ?1 AND expires_at > ?3",
                        )?
                        .execute(params![upload, until, now])?
                };
                if going_on == 0 {
                    return Ok(false);
                }
                connection
                    .prepare_cached(
                        "INSERT INTO jobs_chunk (upload_id, number, body) VALUES (?1, ?2, ?3)",
                    )?
                    .execute(params![upload, number, &bytes[..]])?;
                Ok(true)
            })
            .boxed()
    }

    fn get(&self, upload: Uuid, number: i64) -> StoreFuture<'_, Option<Bytes>> {
        let clock = self.clock.clone();
        async move {
            let read = self.sqlite.read("get_chunk", move |connection| {
                let found = connection
                    .prepare_cached(
                        "SELECT p.body, u.expires_at FROM jobs_chunk p
                        LEFT JOIN jobs_upload u ON u.id = p.upload_id
                        WHERE p.upload_id = ?1 AND p.number = ?2",
                    )?
                    .query_row(params![upload, number], |row| {
                        let end: Option<i64> = row.get("expires_at")?;
                        Ok((Bytes::from(row.get::<_, Vec<u8>>("body")?), end))
                    })
                    .optional()?;
                let near = clock() + lasting(CHUNK_GRACE) / 2;
                Ok::<_, Error>(found.map(|(body, end)| (body, end.is_some_and(|end| end < near))))
            });
            let Some((body, is_near)) = read.await? else {
                return Ok(None);
            };
            if is_near {
                self.keep_for_reader(upload).await?;
            }
            Ok(Some(body))
        }
        .boxed()
    }

    fn remove(&self, upload: Uuid) -> StoreFuture<'_, bool> {
        self.sqlite
            .write("remove_chunks", move |connection| {
                Ok(remove(connection, upload, CHUNKS_REMOVED_AT_ONCE)? == 0)
            })
            .boxed()
    }
}

/// Keeps chunks as long as an answer, and for its last readers. Returns whether they are there.
pub(super) fn keep(
    connection: &Connection,
    upload: Uuid,
    now: i64,
    answer_expires_at: i64,
) -> Result<bool> {
    let kept = connection
        .prepare_cached("UPDATE jobs_upload SET expires_at = ?2 WHERE id = ?1 AND expires_at > ?3")?
        .execute(params![
            upload,
            answer_expires_at + lasting(CHUNK_GRACE),
            now
        ])?;
    Ok(kept == 1)
}

/// Leaves the chunks of a removed answer to their readers for a while.
pub(super) fn free(connection: &Connection, upload: Uuid, now: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE jobs_upload SET expires_at = min(expires_at, ?2) WHERE id = ?1")?
        .execute(params![upload, now + lasting(CHUNK_GRACE)])?;
    Ok(())
}

/// Removes a slice of the expired chunks.
pub(super) fn sweep(connection: &Connection, now: i64) -> Result<()> {
    let mut over = connection.prepare_cached(
        "SELECT id FROM jobs_upload WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 1",
    )?;
    let mut more = CHUNKS_REMOVED_AT_ONCE;
    while more > 0
        && let Some(upload) = over.query_row([now], |row| row.get("id")).optional()?
    {
        more = remove(connection, upload, more)?;
    }
    Ok(())
}

/// Returns how many more chunks could have been removed: with 0 there may be more.
fn remove(connection: &Connection, upload: Uuid, slice: i64) -> Result<i64> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM jobs_chunk WHERE rowid IN (
                SELECT rowid FROM jobs_chunk WHERE upload_id = ?1 ORDER BY number LIMIT ?2
            )",
        )?
        .execute(params![upload, slice])?;
    let left = slice - i64::try_from(removed).unwrap_or(slice);
    // An upload that has lost a chunk is not extended, not continued, and not put into an answer.
    let sql = if left > 0 {
        "DELETE FROM jobs_upload WHERE id = ?1"
    } else {
        "UPDATE jobs_upload SET expires_at = 0 WHERE id = ?1"
    };
    connection.prepare_cached(sql)?.execute([upload])?;
    Ok(left)
}
