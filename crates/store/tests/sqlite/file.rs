//! The settings of the file that durability stands on.

use std::path::Path;

use wakeline_store::{Error, Sqlite, sqlite::Options};
use wakeline_testkit::SqliteDatabase;

use crate::fixture::open;

#[tokio::test]
async fn the_writer_and_the_readers_use_a_log_that_is_synced_at_every_commit() {
    const FULL: i64 = 2;
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let settings = |connection: &rusqlite::Connection| -> Result<_, Error> {
        let journal: String =
            connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let synchronous: i64 =
            connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        let foreign_keys: bool =
            connection.pragma_query_value(None, "foreign_keys", |row| row.get(0))?;
        Ok((journal, synchronous, foreign_keys))
    };
    let expected = Ok(("wal".to_owned(), FULL, true));
    assert_eq!(sqlite.write("item", settings).await, expected);
    assert_eq!(sqlite.read("item", settings).await, expected);
}

#[test]
fn a_database_that_cannot_have_a_write_ahead_log_is_refused() {
    // In memory each connection would also have a database of its own.
    let error = Sqlite::open(Path::new(":memory:"), &Options::default(), &[]).unwrap_err();
    assert!(error.to_string().contains("write-ahead log"), "{error}");
}

#[test]
fn a_file_that_cannot_be_created_is_named() {
    let error =
        Sqlite::open(Path::new("/nowhere/wakeline.db"), &Options::default(), &[]).unwrap_err();
    assert!(
        error.to_string().contains("/nowhere/wakeline.db"),
        "{error}"
    );
}

#[tokio::test]
async fn a_long_log_is_moved_into_the_file_while_the_store_is_open() {
    const ROW: usize = 100_000;
    const ROWS: usize = 100;
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let size = || std::fs::metadata(database.path()).unwrap().len();
    for number in 0..ROWS {
        let name = format!("{number}{}", "x".repeat(ROW));
        let insert = move |connection: &rusqlite::Connection| {
            connection.execute("INSERT INTO item VALUES (?1, 1)", [name])?;
            Ok::<_, Error>(())
        };
        sqlite.write("insert", insert).await.unwrap();
    }
    let wanted = (ROW * ROWS / 2) as u64;
    for _ in 0..1_000 {
        if size() >= wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the file has {} of {} bytes", size(), ROW * ROWS);
}
