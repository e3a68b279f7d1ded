//! Pieces of large answers on SQLite: each is a turn of the writer, so that nobody waits long behind
//! a large answer.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;
use wakeline_store::{Error, Sqlite};

use super::{Clock, Result};
use crate::{
    results::{GRACE, Pieces, REMOVED_AT_ONCE, lasting},
    store::Step,
};

pub(super) struct SqlitePieces {
    sqlite: Sqlite,
    clock: Clock,
}

impl SqlitePieces {
    pub(super) fn new(sqlite: Sqlite, clock: Clock) -> Self {
        Self { sqlite, clock }
    }

    /// Keeps them for whoever reads them, where their end is near.
    async fn keep_for_reader(&self, upload: Uuid) -> Result<()> {
        let clock = self.clock.clone();
        let kept = self.sqlite.write("keep_chunks", move |connection| {
            let now = clock();
            keep(connection, upload, now, now).map(drop)
        });
        kept.await
    }
}

impl fmt::Debug for SqlitePieces {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqlitePieces").finish_non_exhaustive()
    }
}

impl Pieces for SqlitePieces {
    fn add(&self, upload: Uuid, number: i64, bytes: Bytes, ttl: Duration) -> Step<'_, bool> {
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

    fn get(&self, upload: Uuid, number: i64) -> Step<'_, Option<Bytes>> {
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
                let near = clock() + lasting(GRACE) / 2;
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

    fn remove(&self, upload: Uuid) -> Step<'_, bool> {
        self.sqlite
            .write("remove_chunks", move |connection| {
                Ok(remove(connection, upload, REMOVED_AT_ONCE)? == 0)
            })
            .boxed()
    }
}

/// Keeps pieces as long as an answer, and for its last readers. Whether they are there.
pub(super) fn keep(
    connection: &Connection,
    upload: Uuid,
    now: i64,
    answer_expires_at: i64,
) -> Result<bool> {
    let kept = connection
        .prepare_cached("UPDATE jobs_upload SET expires_at = ?2 WHERE id = ?1 AND expires_at > ?3")?
        .execute(params![upload, answer_expires_at + lasting(GRACE), now])?;
    Ok(kept == 1)
}

/// Leaves the pieces of an answer that goes to those who read them.
pub(super) fn free(connection: &Connection, upload: Uuid, now: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE jobs_upload SET expires_at = min(expires_at, ?2) WHERE id = ?1")?
        .execute(params![upload, now + lasting(GRACE)])?;
    Ok(())
}

/// Removes a slice of the pieces that are over.
pub(super) fn sweep(connection: &Connection, now: i64) -> Result<()> {
    let mut over = connection.prepare_cached(
        "SELECT id FROM jobs_upload WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 1",
    )?;
    let mut more = REMOVED_AT_ONCE;
    while more > 0
        && let Some(upload) = over.query_row([now], |row| row.get("id")).optional()?
    {
        more = remove(connection, upload, more)?;
    }
    Ok(())
}

/// How many more pieces might have been removed: with 0 there may be more.
fn remove(connection: &Connection, upload: Uuid, slice: i64) -> Result<i64> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM jobs_chunk WHERE rowid IN (
                SELECT rowid FROM jobs_chunk WHERE upload_id = ?1 ORDER BY number LIMIT ?2
            )",
        )?
        .execute(params![upload, slice])?;
    let left = slice - i64::try_from(removed).unwrap_or(slice);
    // One that has lost a piece is not kept longer, nor gone on with, nor put into an answer.
    let sql = if left > 0 {
        "DELETE FROM jobs_upload WHERE id = ?1"
    } else {
        "UPDATE jobs_upload SET expires_at = 0 WHERE id = ?1"
    };
    connection.prepare_cached(sql)?.execute([upload])?;
    Ok(left)
}
