//! What the writer may do while the disk is full.
//!
//! The file does not grow then: an operation that would make it grow is refused, and those beside it
//! in the same commit stand. The reserve's room is for the log, which is moved into the file after
//! every commit, so that it begins anew and needs no more room.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use rusqlite::Connection;

use super::{STORE, reserve::Reserve};
use crate::{error::Error, metrics};

const TRY_EVERY: Duration = Duration::from_secs(1);
/// An operation of few changes can need a page more by chance, when a page of a table splits.
const SMALL_GROWTH: i64 = 2;
/// So many pages are for those, out of the reserve.
const HEADROOM: i64 = 256;

#[derive(Debug)]
pub(super) struct DiskSpace {
    reserve: Reserve,
    is_full: Arc<AtomicBool>,
    shortage: Option<Shortage>,
}

#[derive(Debug)]
struct Shortage {
    limit: PageLimit,
    last_try: Instant,
}

/// The pages that the file had when the disk was full.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageLimit(i64);

impl PageLimit {
    /// Whether an operation that found `before` pages in use may stand.
    pub(super) fn check(self, connection: &Connection, before: i64) -> Result<(), Error> {
        let after = used_pages(connection)?;
        let is_small = after - before <= SMALL_GROWTH && after <= self.0 + HEADROOM;
        if after <= before || after <= self.0 || is_small {
            return Ok(());
        }
        Err(Error::disk_full("the database file cannot grow"))
    }
}

pub(super) fn used_pages(connection: &Connection) -> rusqlite::Result<i64> {
    const USED: &str =
        "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count";
    connection
        .prepare_cached(USED)?
        .query_row([], |row| row.get(0))
}

impl DiskSpace {
    pub(super) fn new(reserve: Reserve, is_full: Arc<AtomicBool>) -> Self {
        Self {
            reserve,
            is_full,
            shortage: None,
        }
    }

    fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
        metrics::disk_full(STORE, is_full);
    }

    /// At the start.
    pub(super) fn make_reserve(&mut self, connection: &Connection) {
        self.set_full(false);
        match self.reserve.is_kept() {
            Ok(true) => {}
            Ok(false) => self.ran_out(connection),
            Err(error) => tracing::warn!(
                %error,
                "no room could be set aside for the time when the disk is full"
            ),
        }
    }

    /// The next operation. While the disk is full, it looks for room meanwhile.
    pub(super) fn next<T>(&mut self, connection: &Connection, arriving: &Receiver<T>) -> Option<T> {
        loop {
            let Some(shortage) = &self.shortage else {
                return arriving.recv().ok();
            };
            if shortage.last_try.elapsed() >= TRY_EVERY {
                self.look_for_room(connection);
                continue;
            }
            match arriving.recv_timeout(TRY_EVERY) {
                Ok(operation) => return Some(operation),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    pub(super) fn limit(&self) -> Option<PageLimit> {
        self.shortage.as_ref().map(|shortage| shortage.limit)
    }

    /// After a transaction that SQLite ended for a reason that is not known here: whether there is no
    /// room.
    pub(super) fn has_run_out(&mut self, connection: &Connection) -> bool {
        if self.shortage.is_none() && matches!(self.reserve.take(), Ok(false)) {
            self.ran_out(connection);
        }
        self.shortage.is_some()
    }

    /// Outside of a transaction.
    pub(super) fn ran_out(&mut self, connection: &Connection) {
        if self.shortage.is_some() {
            return;
        }
        let released = self.reserve.release();
        let pages = connection.query_row("PRAGMA page_count", [], |row| row.get(0));
        let pages = pages.unwrap_or_default();
        tracing::error!(
            pages,
            ?released,
            "the disk is full: what needs more room is refused until there is room again"
        );
        self.shortage = Some(Shortage {
            limit: PageLimit(pages),
            last_try: Instant::now(),
        });
        self.set_full(true);
        set_cache_spill(connection, false);
        move_log(connection);
    }

    /// After a commit.
    pub(super) fn committed(&self, connection: &Connection) {
        if self.shortage.is_some() {
            move_log(connection);
        }
    }

    fn look_for_room(&mut self, connection: &Connection) {
        match self.reserve.take() {
            Ok(true) => tracing::info!("there is room on the disk again"),
            Ok(false) => {
                if let Some(shortage) = &mut self.shortage {
                    shortage.last_try = Instant::now();
                }
                return;
            }
            Err(error) => tracing::warn!(%error, "it is not known whether the disk is full"),
        }
        self.shortage = None;
        self.set_full(false);
        set_cache_spill(connection, true);
    }
}

/// Without it an operation that is refused in the end would have used up the log's room.
fn set_cache_spill(connection: &Connection, spills: bool) {
    let _ = connection.pragma_update(None, "cache_spill", spills);
}

/// An error is not worth a line: the commits that have no room say so.
fn move_log(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
}
