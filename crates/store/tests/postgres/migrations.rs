//! Versions of the tables.

use std::time::Duration;

use futures_util::future::join_all;
use wakeline_store::{Migrations, Postgres, migrate::OpenError, postgres::Options};
use wakeline_testkit::{PostgresDatabase, url_for};

use crate::fixture::number;

const ONE: &str = "CREATE TABLE wakeline.one AS SELECT 1 AS id";
const TWO: &str = "CREATE TABLE wakeline.two (id bigint)";
const VERSION: &str = "SELECT version FROM wakeline.migration WHERE door = 'item'";

const fn door(steps: &'static [&'static str]) -> Migrations {
    Migrations {
        door: "item",
        steps,
    }
}

async fn open(url: &str, migrations: &[Migrations]) -> Result<Postgres, OpenError> {
    Postgres::open(url, &Options::default(), migrations).await
}

/// As it comes from `CREATE DATABASE`, after `setting`.
async fn empty(setting: &str) -> PostgresDatabase {
    let database = PostgresDatabase::new(&[]).await;
    let postgres = database.open(&[]).await;
    postgres
        .query("drop", "DROP SCHEMA wakeline CASCADE", &[])
        .await
        .unwrap();
    if !setting.is_empty() {
        let alter = format!("ALTER DATABASE {} SET {setting}", database.name());
        postgres.query("alter", &alter, &[]).await.unwrap();
    }
    database
}

#[tokio::test]
async fn a_second_open_changes_nothing() {
    let database = empty("").await;
    drop(open(&database.url(), &[door(&[ONE])]).await.unwrap());
    let postgres = open(&database.url(), &[]).await.unwrap();
    // Written again, a row carries the id of another transaction.
    let row = "SELECT xmin::text::bigint FROM wakeline.migration";
    let before = number(&postgres, row).await;

    drop(open(&database.url(), &[door(&[ONE])]).await.unwrap());

    assert_eq!(number(&postgres, row).await, before);
    assert_eq!(
        number(&postgres, "SELECT count(*) FROM wakeline.one").await,
        1
    );
}

#[tokio::test]
async fn a_newer_program_runs_only_the_missing_migrations() {
    let database = empty("").await;
    drop(open(&database.url(), &[door(&[ONE])]).await.unwrap());

    let postgres = open(&database.url(), &[door(&[ONE, TWO])]).await.unwrap();

    assert_eq!(
        number(&postgres, "SELECT count(*) FROM wakeline.one").await,
        1
    );
    assert_eq!(
        number(&postgres, "SELECT count(*) FROM wakeline.two").await,
        0
    );
    assert_eq!(number(&postgres, VERSION).await, 2);
}

#[tokio::test]
async fn many_processes_may_open_an_empty_database_at_once() {
    // Also where a transaction by default sees only what was there when it began.
    for setting in ["", "default_transaction_isolation = 'repeatable read'"] {
        let database = empty(setting).await;
        let url = database.url();
        let opening = (0..8).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { open(&url, &[door(&[ONE, TWO])]).await })
        });
        for opened in join_all(opening).await {
            opened.unwrap().unwrap();
        }
        let postgres = open(&url, &[]).await.unwrap();
        assert_eq!(
            number(&postgres, "SELECT count(*) FROM wakeline.one").await,
            1
        );
    }
}

#[tokio::test]
async fn a_failed_migration_leaves_the_version_before_it() {
    let database = empty("").await;
    drop(open(&database.url(), &[door(&[ONE])]).await.unwrap());

    let steps = &[
        ONE,
        TWO,
        "CREATE TABLE wakeline.three (id bigint); SELECT 1/0",
    ];
    let error = open(&database.url(), &[door(steps)]).await.unwrap_err();

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
    assert!(error.to_string().contains("division by zero"), "{error}");
    let postgres = open(&database.url(), &[]).await.unwrap();
    assert_eq!(number(&postgres, VERSION).await, 1);
    let later = "SELECT count(*) FROM pg_tables WHERE tablename IN ('two', 'three')";
    assert_eq!(number(&postgres, later).await, 0);
}

#[tokio::test]
async fn a_migration_may_take_longer_than_a_statement() {
    let database = empty("").await;
    let options = Options {
        statement_timeout: Duration::from_secs(1),
        ..Options::default()
    };
    let slow = door(&["DO 'BEGIN PERFORM pg_sleep(1.5); END'"]);
    Postgres::open(&database.url(), &options, &[slow])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_database_from_a_newer_program_is_refused_and_left_alone() {
    let database = empty("").await;
    let postgres = open(&database.url(), &[door(&[ONE, TWO])]).await.unwrap();

    let error = open(&database.url(), &[door(&[ONE])]).await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "the database is at version 2 of 'item', this program knows only 1: run the newer program"
    );
    assert_eq!(number(&postgres, VERSION).await, 2);
}

#[tokio::test]
async fn a_database_that_is_not_utf8_is_refused() {
    let database = PostgresDatabase::new(&[]).await;
    let admin = database.open(&[]).await;
    let latin = format!("{}_latin", database.name());
    let create = format!("CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    admin.query("create", &create, &[]).await.unwrap();

    let refused = open(&url_for(&database.url(), &latin), &[door(&[ONE])]).await;

    let drop = format!("DROP DATABASE {latin} WITH (FORCE)");
    admin.query("drop", &drop, &[]).await.unwrap();
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the database cannot be opened: the database's encoding is LATIN1; create it with \
         ENCODING 'UTF8'"
    );
}
