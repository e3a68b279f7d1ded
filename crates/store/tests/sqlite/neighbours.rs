//! One bad operation among good ones in the same commit.

use std::time::Duration;

use rusqlite::Connection;
use wakeline_store::{Error, sqlite::Options};
use wakeline_testkit::SqliteDatabase;

use crate::fixture::{BlockedWriter, commits, insert, names, open, outside, submit};

#[tokio::test]
async fn an_operation_that_fails_undoes_its_own_changes_and_no_others() {
    let failed = Error::Failed("no".into());
    let bad = |connection: &Connection| {
        insert(connection, "bad")?;
        Err(Error::Failed("no".into()))
    };
    assert_eq!(among_neighbours(bad).await, failed);
}

#[tokio::test]
async fn an_operation_that_panics_undoes_its_own_changes_and_no_others() {
    let bad = |connection: &Connection| {
        insert(connection, "bad")?;
        panic!("meant")
    };
    let error = among_neighbours(bad).await;
    assert!(matches!(error, Error::Failed(_)), "{error:?}");
}

#[tokio::test]
async fn a_statement_that_violates_a_constraint_fails_its_own_operation_only() {
    let bad = |connection: &Connection| {
        insert(connection, "bad")?;
        Ok(connection.execute("INSERT INTO item VALUES ('worse', -1)", [])?)
    };
    let error = among_neighbours(bad).await;
    assert!(matches!(error, Error::Failed(_)), "{error:?}");
}

/// The error that `bad` gets in one commit with good ones before and after it, which must stand.
async fn among_neighbours(
    bad: impl FnOnce(&Connection) -> Result<usize, Error> + Send + 'static,
) -> Error {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let before = commits(&database.path());
    let stopped = BlockedWriter::at(&sqlite, "first");
    let left = submit(&sqlite, |connection| insert(connection, "left"));
    let bad = submit(&sqlite, bad);
    let right = submit(&sqlite, |connection| insert(connection, "right"));

    assert_eq!(stopped.release().await, Ok(1));
    assert_eq!(left.await, Ok(1));
    let error = bad.await.unwrap_err();
    assert_eq!(right.await, Ok(1));

    assert_eq!(commits(&database.path()) - before, 1);
    assert_eq!(names(&outside(&database)), ["first", "left", "right"]);
    error
}

#[tokio::test]
async fn every_operation_of_a_failed_transaction_fails() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let stopped = BlockedWriter::at(&sqlite, "first");
    let left = submit(&sqlite, |connection| insert(connection, "left"));
    // As SQLite itself does it on a full disk.
    let fatal = submit(&sqlite, |connection| {
        let sql = "INSERT OR ROLLBACK INTO item VALUES ('first', 1)";
        Ok(connection.execute(sql, [])?)
    });
    let right = submit(&sqlite, |connection| insert(connection, "right"));

    let results = [
        stopped.release().await,
        left.await,
        fatal.await,
        right.await,
    ];

    let present = names(&outside(&database));
    for (name, result) in ["first", "left", "fatal", "right"].iter().zip(&results) {
        assert_eq!(
            result.is_ok(),
            present.iter().any(|known| known == name),
            "{name}: {result:?}"
        );
    }
    assert!(
        matches!(results[0], Err(Error::Unavailable(_))),
        "{results:?}"
    );
    sqlite
        .write("item", |connection| insert(connection, "after"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_file_that_another_process_keeps_locked_is_unavailable_and_then_works_again() {
    let database = SqliteDatabase::new();
    let options = Options {
        busy_timeout: Duration::from_millis(10),
        ..Options::default()
    };
    let sqlite = open(&database, &options);
    let other = outside(&database);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let error = sqlite
        .write("item", |connection| insert(connection, "blocked"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");

    other.execute_batch("ROLLBACK").unwrap();
    sqlite
        .write("item", |connection| insert(connection, "free"))
        .await
        .unwrap();
    assert_eq!(names(&other), ["free"]);
}

#[tokio::test]
async fn a_write_on_a_full_disk_is_unavailable() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let error = sqlite
        .write("item", |connection| {
            connection.pragma_update(None, "max_page_count", 1)?;
            insert(connection, &"long".repeat(10_000))
        })
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(names(&outside(&database)).is_empty());
}
