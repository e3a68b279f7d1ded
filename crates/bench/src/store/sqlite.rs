//! SQLite: the store's writer thread against one connection under a mutex.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use rusqlite::Connection;
use tempfile::TempDir;
use wakeline_store::{Migrations, Sqlite, sqlite::Options};

use super::load::Load;
use super::{BODY, Store};

const TABLE: Migrations = Migrations {
    door: "bench",
    steps: &["CREATE TABLE bench (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"],
};
const INSERT: &str = "INSERT INTO bench (body) VALUES (?1)";

pub(super) struct SqliteStore {
    grouped: Sqlite,
    single: Arc<Mutex<Connection>>,
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
            single: Arc::new(Mutex::new(connect(&path)?)),
            directory,
        })
    }
}

impl Store for SqliteStore {
    async fn grouped(&self, writers: usize, time: Duration) -> anyhow::Result<Load> {
        let sqlite = self.grouped.clone();
        Load::by_tasks(writers, time, move || {
            let sqlite = sqlite.clone();
            async move {
                sqlite
                    .write("bench", |connection| Ok(insert(connection)?))
                    .await
            }
        })
        .await
    }

    /// Each call takes the connection, and its statement is its own transaction.
    async fn single(&self, writers: usize, time: Duration) -> anyhow::Result<Load> {
        let connection = self.single.clone();
        let load = move || {
            Load::by_threads(writers, time, || {
                let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(insert(&connection)?)
            })
        };
        tokio::task::spawn_blocking(load).await?
    }

    /// The transaction counter in the log's index:
    /// <https://sqlite.org/walformat.html#the_wal_index_header>.
    fn commits(&self) -> anyhow::Result<u64> {
        const COUNTER_AT: u64 = 8;
        let mut path = self.grouped.path().to_owned().into_os_string();
        path.push("-shm");
        let mut counter = [0; 4];
        File::open(PathBuf::from(path))
            .and_then(|index| index.read_exact_at(&mut counter, COUNTER_AT))
            .context("reading the index of the write-ahead log")?;
        Ok(u32::from_ne_bytes(counter).into())
    }

    fn describe(&self) -> String {
        format!(
            "SQLite {} in {}, synchronous=FULL, one writing connection",
            rusqlite::version(),
            self.directory.path().display()
        )
    }

    async fn close(&self) -> anyhow::Result<()> {
        // The directory goes with the value.
        Ok(())
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
