//! SQLite: the store's writer thread against one connection under a mutex.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::block_in_place;
use wakeline_store::{Migrations, Sqlite, sqlite::Options};

use super::BODY;

const TABLE: Migrations = Migrations {
    door: "bench",
    steps: &["CREATE TABLE bench (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"],
};
const INSERT: &str = "INSERT INTO bench (body) VALUES (?1)";

pub(super) struct SqliteStore {
    grouped: Sqlite,
    single: Mutex<Connection>,
    directory: TempDir,
}

impl SqliteStore {
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("wakeline-bench-")
            .tempdir_in(directory)
            .with_context(|| format!("making a directory in {}", directory.display()))?;
        let open = |name| Sqlite::open(&directory.path().join(name), &Options::default(), &[TABLE]);
        let grouped = open("grouped.db")?;
        // Opened by the store for the same file format, then used without it.
        let path = open("single.db")?.path().to_owned();
        Ok(Self {
            grouped,
            single: Mutex::new(connect(&path)?),
            directory,
        })
    }

    pub(super) async fn write_in_group(&self) -> Result<(), wakeline_store::Error> {
        let insert = |connection: &Connection| Ok(insert(connection)?);
        self.grouped.write("bench", insert).await
    }

    /// Each call takes the connection, and its statement is its own transaction.
    pub(super) fn write_alone(&self) -> Result<(), wakeline_store::Error> {
        block_in_place(|| {
            let connection = self.single.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(insert(&connection)?)
        })
    }

    /// The transaction counter in the log's index:
    /// <https://sqlite.org/walformat.html#the_wal_index_header>.
    pub(super) fn group_commits(&self) -> anyhow::Result<u64> {
        const COUNTER_AT: u64 = 8;
        let mut path = self.grouped.path().to_owned().into_os_string();
        path.push("-shm");
        let mut counter = [0; 4];
        File::open(PathBuf::from(path))
            .and_then(|index| index.read_exact_at(&mut counter, COUNTER_AT))
            .context("reading the index of the write-ahead log")?;
        Ok(u32::from_ne_bytes(counter).into())
    }

    pub(super) fn describe(&self) -> String {
        format!(
            "SQLite {} in {}, synchronous=FULL, one writing connection",
            rusqlite::version(),
            self.directory.path().display()
        )
    }
}

/// With the store's own settings.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

fn insert(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(INSERT)?.execute([BODY])?;
    Ok(())
}
