//! SQLite: one writer thread that groups commits, and separate read connections.
//!
//! WAL with `synchronous=FULL`: a commit is on disk when it returns, and readers never wait for
//! the writer.

mod checkpoint;
mod disk_space;
mod reader;
mod reserve;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig};

use crate::{
    error::Error,
    load::{Load, Meter},
    migrate::{Migrations, OpenError},
};
use disk_space::DiskSpace;
use reader::Readers;
use reserve::Reserve;
use writer::Writer;

pub(crate) const STORE: &str = "sqlite";

/// The prepared statements that a connection keeps.
const CACHED_STATEMENTS: usize = 256;

const SWITCH_PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Debug)]
pub struct Options {
    pub readers: usize,
    /// Operations per commit at most.
    pub max_batch: usize,
    /// Operations that may wait for a commit.
    pub max_pending: usize,
    /// How long an operation waits for another process that locks the file.
    pub busy_timeout: Duration,
    /// Bytes that a file beside the database takes up until the disk is full. 0: none.
    pub reserve: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            readers: 2,
            max_batch: 512,
            max_pending: 100_000,
            busy_timeout: Duration::from_secs(5),
            reserve: 0,
        }
    }
}

/// An open SQLite file. Dropping the last clone ends its threads after the submitted operations.
#[derive(Clone, Debug)]
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
    path: PathBuf,
    meter: Arc<Meter>,
    is_full: Arc<AtomicBool>,
}

impl Sqlite {
    /// Opens or creates the file and brings it to the newest version of every door.
    pub fn open(
        path: &Path,
        options: &Options,
        migrations: &[Migrations],
    ) -> Result<Self, OpenError> {
        let at = |reason: String| OpenError::Open(format!("{}: {reason}", path.display()));
        let mut connection = connect(path, options).map_err(at)?;
        migrate(&mut connection, migrations)?;
        let beside = connect(path, options).map_err(at)?;
        checkpoint::start(&mut connection, beside).map_err(|error| at(error.to_string()))?;
        let readers = (0..options.readers.max(1))
            .map(|_| {
                let reader = connect(path, options)?;
                reader
                    .pragma_update(None, "query_only", true)
                    .map_err(|error| error.to_string())?;
                Ok(reader)
            })
            .collect::<Result<Vec<_>, String>>()
            .map_err(at)?;
        let meter = Arc::<Meter>::default();
        let limits = (options.max_batch, options.max_pending);
        let is_full = Arc::<AtomicBool>::default();
        let reserve = Reserve::beside(path, options.reserve);
        let disk = DiskSpace::new(reserve, is_full.clone());
        Ok(Self {
            writer: Writer::start(connection, limits, meter.clone(), disk),
            readers: Readers::start(readers, options.max_pending, &meter),
            path: path.to_owned(),
            meter,
            is_full,
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The load of the writer and the readers.
    #[must_use]
    pub fn load(&self) -> Load {
        self.meter.load()
    }

    /// Whether the file can be read, and the disk has room.
    pub async fn ping(&self) -> Result<(), Error> {
        self.read("ping", |connection| {
            Ok::<_, Error>(connection.execute_batch("SELECT count(*) FROM migration")?)
        })
        .await?;
        if self.is_full.load(Ordering::Relaxed) {
            return Err(Error::disk_full("what needs more room is refused"));
        }
        Ok(())
    }

    /// Runs `operation` in the next commit, and returns its result when that is on disk. If it fails,
    /// only its own changes are undone. It runs even if the future is dropped. Tables must not defer
    /// constraints: those would be checked at the commit, for all operations that share it.
    pub async fn write<T, E>(
        &self,
        kind: &'static str,
        operation: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.meter
            .count_failure(self.writer.submit(kind, operation).await)
    }

    /// Runs `query` on a read connection; it sees every commit that was acknowledged before.
    pub async fn read<T, E>(
        &self,
        kind: &'static str,
        query: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.meter
            .count_failure(self.readers.submit(kind, query).await)
    }
}

fn connect(path: &Path, options: &Options) -> Result<Connection, String> {
    let (connection, journal) =
        connect_with_log(path, options).map_err(|error| error.to_string())?;
    // SQLite reports no error when it keeps another journal.
    if journal != "wal" {
        return Err(format!(
            "a write-ahead log is not possible here (the journal stays '{journal}')"
        ));
    }
    Ok(connection)
}

fn connect_with_log(path: &Path, options: &Options) -> rusqlite::Result<(Connection, String)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    let journal = switch_to_log(&connection, options.busy_timeout)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Without it a statement is planned again when parameters have other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok((connection, journal))
}

/// The switch needs an exclusive lock, and SQLite fails at once, without the busy timeout, when another
/// process opens the same new file.
fn switch_to_log(connection: &Connection, patience: Duration) -> rusqlite::Result<String> {
    let began = Instant::now();
    loop {
        let switched =
            connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0));
        match switched {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && began.elapsed() < patience =>
            {
                thread::sleep(SWITCH_PAUSE);
            }
            done => return done,
        }
    }
}

/// The write lock of the file is the migration lock: `BEGIN IMMEDIATE` waits for it.
fn migrate(connection: &mut Connection, migrations: &[Migrations]) -> Result<(), OpenError> {
    let open = |error: rusqlite::Error| OpenError::Open(error.to_string());
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(open)?;
    transaction
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS migration (door TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        )
        .map_err(open)?;
    for door in migrations {
        let version: i64 = transaction
            .query_row(
                "SELECT coalesce(max(version), 0) FROM migration WHERE door = ?1",
                [door.door],
                |row| row.get(0),
            )
            .map_err(open)?;
        for (number, step) in door.missing(version)? {
            transaction
                .execute_batch(step)
                .map_err(|error| door.failed(number, error.to_string()))?;
            transaction
                .execute(
                    "INSERT OR REPLACE INTO migration VALUES (?1, ?2)",
                    (door.door, number),
                )
                .map_err(open)?;
        }
    }
    transaction.commit().map_err(open)
}
