//! Moves the write-ahead log into the file, beside the writer.
//!
//! SQLite itself would do it at the end of the commit that makes the log long enough, and that
//! commit's callers would wait for two more syncs.

use std::thread;

use crossbeam_channel::{Sender, bounded};
use rusqlite::{Connection, hooks::Wal};

/// As SQLite's own default: 4 MB of log.
const PAGES: i32 = 1_000;

/// Starts the thread that moves the log of `writer`, until `writer` is closed.
pub(super) fn start(writer: &mut Connection, own: Connection) -> rusqlite::Result<()> {
    let (request, requested) = bounded::<()>(1);
    thread::Builder::new()
        .name("sqlite-checkpoint".into())
        .spawn(move || {
            let mut has_failed = false;
            while requested.recv().is_ok() {
                // Passive: it waits for nothing and blocks nothing. The next one moves the rest.
                let moved = own.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                // Once: on a full disk it fails after every commit.
                if let Err(error) = &moved
                    && !has_failed
                {
                    tracing::warn!(%error, "the log could not be moved into the file");
                }
                has_failed = moved.is_err();
            }
        })
        .expect("a thread can be started");
    writer.wal_hook(Some(watch(request)))
}

/// In place of SQLite's own checkpoint at the end of a commit.
fn watch(request: Sender<()>) -> impl FnMut(&mut Wal, i32) -> rusqlite::Result<()> + Send {
    move |_, pages| {
        if pages >= PAGES {
            // One request is enough.
            let _ = request.try_send(());
        }
        Ok(())
    }
}
