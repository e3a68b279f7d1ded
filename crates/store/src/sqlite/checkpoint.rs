//! Moving the log into the file, beside the writer instead of inside its commits.
//!
//! SQLite's own way is to do it at the end of whichever commit makes the log long enough, and that
//! commit's callers wait for two more syncs.

use std::thread;

use crossbeam_channel::{Sender, bounded};
use rusqlite::{Connection, hooks::Wal};

/// As SQLite's own default: 4 MB of log.
const PAGES: i32 = 1_000;

/// Sees to the log of `writer` on a connection of its own, until `writer` is closed.
pub(super) fn start(writer: &mut Connection, own: Connection) -> rusqlite::Result<()> {
    let (ask, asked) = bounded::<()>(1);
    thread::Builder::new()
        .name("sqlite-checkpoint".into())
        .spawn(move || {
            while asked.recv().is_ok() {
                // Passive: it waits for nobody and holds nobody up. What it cannot move yet, the
                // next one does.
                let moved = own.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
                if let Err(error) = moved {
                    tracing::warn!(%error, "the log could not be moved into the file");
                }
            }
        })
        .expect("a thread can be started");
    writer.wal_hook(Some(watch(ask)))
}

/// In place of SQLite's own checkpoint at the end of a commit.
fn watch(ask: Sender<()>) -> impl FnMut(&mut Wal, i32) -> rusqlite::Result<()> + Send {
    move |_, pages| {
        if pages >= PAGES {
            // One that is asked for already is enough.
            let _ = ask.try_send(());
        }
        Ok(())
    }
}
