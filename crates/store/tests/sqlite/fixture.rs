//! A small table, a writer that can be blocked, and a connection beside the store.

use std::{fs, path::Path, pin::Pin, sync::mpsc};

use futures_util::FutureExt;
use rusqlite::Connection;
use wakeline_store::{Error, Migrations, Sqlite, sqlite::Options};
use wakeline_testkit::SqliteDatabase;

pub(crate) const ITEMS: Migrations = Migrations {
    door: "item",
    steps: &["CREATE TABLE item (name TEXT PRIMARY KEY, amount INTEGER CHECK (amount >= 0))"],
};

pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

pub(crate) fn open(database: &SqliteDatabase, options: &Options) -> Sqlite {
    Sqlite::open(&database.path(), options, &[ITEMS]).unwrap()
}

/// A connection beside the store.
pub(crate) fn outside(database: &SqliteDatabase) -> Connection {
    Connection::open(database.path()).unwrap()
}

pub(crate) fn insert(connection: &Connection, name: &str) -> Result<usize, Error> {
    Ok(connection.execute("INSERT INTO item VALUES (?1, 1)", [name])?)
}

/// Submits an operation by polling it once.
pub(crate) fn submit<T: Send + 'static>(
    sqlite: &Sqlite,
    operation: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
) -> Pending<T> {
    let sqlite = sqlite.clone();
    let mut pending: Pending<T> = Box::pin(async move { sqlite.write("item", operation).await });
    assert!(
        is_pending(&mut pending),
        "an operation was answered by its first poll"
    );
    pending
}

pub(crate) fn is_pending<T>(pending: &mut Pending<T>) -> bool {
    pending.as_mut().now_or_never().is_none()
}

/// An operation that blocks the writer until it is released.
pub(crate) struct BlockedWriter {
    release: mpsc::Sender<()>,
    pub(crate) operation: Pending<usize>,
}

impl BlockedWriter {
    /// The writer is inside the operation, which has inserted `name`, when this returns.
    pub(crate) fn at(sqlite: &Sqlite, name: &'static str) -> Self {
        let (release, released) = mpsc::channel();
        let (arrive, arrived) = mpsc::channel();
        let operation = submit(sqlite, move |connection| {
            let inserted = insert(connection, name);
            arrive.send(()).unwrap();
            released.recv().unwrap();
            inserted
        });
        arrived.recv().unwrap();
        Self { release, operation }
    }

    pub(crate) fn release(self) -> Pending<usize> {
        self.release.send(()).unwrap();
        self.operation
    }
}

pub(crate) fn names(connection: &Connection) -> Vec<String> {
    let mut statement = connection
        .prepare("SELECT name FROM item ORDER BY name")
        .unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The commits in the write-ahead log: frames that carry the size of the database after them.
/// <https://sqlite.org/fileformat2.html#the_write_ahead_log>
pub(crate) fn commits(database: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME_HEADER: usize = 24;
    let log = fs::read(database.with_extension("db-wal")).unwrap();
    let number = |at: &[u8]| u32::from_be_bytes(at[..4].try_into().unwrap());
    let page = usize::try_from(number(&log[8..])).unwrap();
    let salt = &log[16..24];
    log[HEADER..]
        .chunks_exact(FRAME_HEADER + page)
        .take_while(|frame| &frame[8..16] == salt)
        .filter(|frame| number(&frame[4..]) != 0)
        .count()
}
