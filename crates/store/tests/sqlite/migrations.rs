//! Versions of the tables.

use std::{sync::Barrier, thread};

use rusqlite::Connection;
use wakeline_store::{Migrations, Sqlite, migrate::OpenError, sqlite::Options};
use wakeline_testkit::SqliteDatabase;

use crate::fixture::outside;

const ONE: &str = "CREATE TABLE one (id INTEGER); INSERT INTO one VALUES (1)";
const TWO: &str = "CREATE TABLE two (id INTEGER)";

const fn door(steps: &'static [&'static str]) -> Migrations {
    Migrations {
        door: "item",
        steps,
    }
}

fn open(database: &SqliteDatabase, migrations: &[Migrations]) -> Result<Sqlite, OpenError> {
    Sqlite::open(&database.path(), &Options::default(), migrations)
}

fn version(connection: &Connection) -> i64 {
    let sql = "SELECT version FROM migration WHERE door = 'item'";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn count(connection: &Connection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    connection.query_row(&sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_second_open_changes_nothing() {
    let database = SqliteDatabase::new();
    drop(open(&database, &[door(&[ONE])]).unwrap());
    let outside = outside(&database);
    let data_version = || -> i64 {
        outside
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .unwrap()
    };
    let before = data_version();

    drop(open(&database, &[door(&[ONE])]).unwrap());

    assert_eq!(data_version(), before);
    assert_eq!(count(&outside, "one"), 1);
}

#[test]
fn a_newer_program_runs_only_the_missing_migrations() {
    let database = SqliteDatabase::new();
    drop(open(&database, &[door(&[ONE])]).unwrap());

    drop(open(&database, &[door(&[ONE, TWO])]).unwrap());

    let outside = outside(&database);
    assert_eq!((count(&outside, "one"), count(&outside, "two")), (1, 0));
    assert_eq!(version(&outside), 2);
}

#[test]
fn each_door_has_its_own_version() {
    let database = SqliteDatabase::new();
    let other = Migrations {
        door: "other",
        steps: &[TWO],
    };
    drop(open(&database, &[door(&[ONE])]).unwrap());

    drop(open(&database, &[door(&[ONE]), other]).unwrap());

    assert_eq!(count(&outside(&database), "migration"), 2);
}

#[test]
fn many_stores_may_open_a_new_file_at_once() {
    const OPENING: usize = 8;
    for _ in 0..10 {
        let database = SqliteDatabase::new();
        let start = Barrier::new(OPENING);
        thread::scope(|scope| {
            for _ in 0..OPENING {
                scope.spawn(|| {
                    start.wait();
                    open(&database, &[door(&[ONE, TWO])]).unwrap();
                });
            }
        });
        assert_eq!(count(&outside(&database), "one"), 1);
    }
}

#[test]
fn a_failed_migration_leaves_the_version_before_it() {
    let database = SqliteDatabase::new();
    drop(open(&database, &[door(&[ONE])]).unwrap());

    let error = open(
        &database,
        &[door(&[
            ONE,
            TWO,
            "CREATE TABLE three (id INTEGER); nonsense",
        ])],
    )
    .unwrap_err();

    assert!(
        matches!(
            error,
            OpenError::Step {
                door: "item",
                step: 3,
                ..
            }
        ),
        "{error}"
    );
    let outside = outside(&database);
    assert_eq!(version(&outside), 1);
    let later = "SELECT count(*) FROM sqlite_schema WHERE name IN ('two', 'three')";
    assert_eq!(
        outside.query_row(later, [], |row| row.get::<_, i64>(0)),
        Ok(0)
    );
    drop(open(&database, &[door(&[ONE, TWO])]).unwrap());
    assert_eq!(version(&outside), 2);
}

#[test]
fn a_file_from_a_newer_program_is_refused_and_left_alone() {
    let database = SqliteDatabase::new();
    drop(open(&database, &[door(&[ONE, TWO])]).unwrap());

    let error = open(&database, &[door(&[ONE])]).unwrap_err();

    assert_eq!(
        error.to_string(),
        "the database is at version 2 of 'item', this program knows only 1: run the newer program"
    );
    assert_eq!(version(&outside(&database)), 2);
}
