//! Which operations share a commit, when they are answered, and how many can wait.

use std::sync::mpsc;

use futures_util::{FutureExt, future::join_all};
use wakeline_store::{Error, Sqlite, sqlite::Options};
use wakeline_testkit::SqliteDatabase;

use crate::fixture::{
    BlockedWriter, Pending, commits, insert, is_pending, names, open, outside, submit,
};

fn submit_numbers(sqlite: &Sqlite, count: usize) -> Vec<Pending<usize>> {
    let names = (0..count).map(|number| number.to_string());
    names
        .map(|name| submit(sqlite, move |connection| insert(connection, &name)))
        .collect()
}

async fn all_succeed(operations: impl IntoIterator<Item = Pending<usize>>) {
    for result in join_all(operations).await {
        result.unwrap();
    }
}

async fn write(sqlite: &Sqlite, name: &str) {
    let name = name.to_owned();
    let written = sqlite.write("item", move |connection| insert(connection, &name));
    written.await.unwrap();
}

#[tokio::test]
async fn operations_that_arrive_while_the_writer_is_busy_share_a_commit() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let before = commits(&database.path());
    let stopped = BlockedWriter::at(&sqlite, "first");
    let arriving = submit_numbers(&sqlite, 50);

    stopped.release().await.unwrap();
    all_succeed(arriving).await;

    let shared = commits(&database.path()) - before;
    assert!(shared <= 2, "51 operations took {shared} commits");
    assert_eq!(names(&outside(&database)).len(), 51);
}

#[tokio::test]
async fn a_commit_holds_no_more_than_the_largest_batch() {
    let database = SqliteDatabase::new();
    let options = Options {
        max_batch: 10,
        ..Options::default()
    };
    let sqlite = open(&database, &options);
    let before = commits(&database.path());
    let stopped = BlockedWriter::at(&sqlite, "first");
    let arriving = submit_numbers(&sqlite, 49);

    stopped.release().await.unwrap();
    all_succeed(arriving).await;

    assert_eq!(commits(&database.path()) - before, 5);
}

#[tokio::test]
async fn an_operation_that_has_run_is_not_answered_before_its_commit() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let first = BlockedWriter::at(&sqlite, "first");
    let mut early = submit(&sqlite, |connection| insert(connection, "early"));
    let (arrive, arrived) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let late = submit(&sqlite, move |connection| {
        arrive.send(()).unwrap();
        released.recv().unwrap();
        insert(connection, "late")
    });
    let mut first = first.release();
    arrived.recv().unwrap();

    assert!(is_pending(&mut first) && is_pending(&mut early));
    assert!(names(&outside(&database)).is_empty());

    release.send(()).unwrap();
    all_succeed([first, early, late]).await;
}

#[tokio::test]
async fn an_answered_write_is_visible_to_other_connections() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let outside = outside(&database);
    for number in 1..=100 {
        write(&sqlite, &format!("{number}")).await;
        assert_eq!(names(&outside).len(), number);
    }
}

#[tokio::test]
async fn every_reader_sees_the_writes_answered_before() {
    let database = SqliteDatabase::new();
    let options = Options {
        readers: 3,
        ..Options::default()
    };
    let sqlite = open(&database, &options);
    for number in 1..=50 {
        write(&sqlite, &format!("{number}")).await;
        let reads = (0..6)
            .map(|_| sqlite.read::<_, Error>("item", |connection| Ok(names(connection).len())));
        for seen in join_all(reads).await {
            assert_eq!(seen, Ok(number));
        }
    }
}

#[tokio::test]
async fn a_query_that_leaves_a_transaction_open_does_not_freeze_its_readers_snapshot() {
    let database = SqliteDatabase::new();
    let options = Options {
        readers: 1,
        ..Options::default()
    };
    let sqlite = open(&database, &options);
    sqlite
        .read::<_, Error>("item", |connection| {
            connection.execute_batch("BEGIN; SELECT * FROM item")?;
            Ok(())
        })
        .await
        .unwrap();

    write(&sqlite, "new").await;

    let seen = sqlite
        .read::<_, Error>("item", |connection| Ok(names(connection)))
        .await;
    assert_eq!(seen, Ok(vec!["new".to_owned()]));
}

#[tokio::test]
async fn a_reader_cannot_write() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let refused = sqlite
        .read("item", |connection| insert(connection, "sly"))
        .await;
    assert!(matches!(refused, Err(Error::Failed(_))), "{refused:?}");
    assert!(names(&outside(&database)).is_empty());
}

#[tokio::test]
async fn an_operation_whose_caller_has_gone_is_committed() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let stopped = BlockedWriter::at(&sqlite, "first");
    drop(submit(&sqlite, |connection| insert(connection, "nobody's")));

    drop(stopped.release());
    // The writer works in order: when this write is answered, so are those before it.
    write(&sqlite, "last").await;

    assert_eq!(names(&outside(&database)), ["first", "last", "nobody's"]);
}

#[tokio::test]
async fn submitted_operations_are_committed_though_the_store_is_dropped() {
    let database = SqliteDatabase::new();
    let sqlite = open(&database, &Options::default());
    let stopped = BlockedWriter::at(&sqlite, "first");
    let second = submit(&sqlite, |connection| insert(connection, "second"));
    drop(sqlite);

    stopped.release().await.unwrap();
    second.await.unwrap();

    assert_eq!(names(&outside(&database)), ["first", "second"]);
}

#[tokio::test]
async fn operations_past_the_limit_are_refused_at_once_and_not_run() {
    let database = SqliteDatabase::new();
    let options = Options {
        max_pending: 3,
        ..Options::default()
    };
    let sqlite = open(&database, &options);
    let stopped = BlockedWriter::at(&sqlite, "first");
    let waiting: Vec<_> = ["a", "b", "c"]
        .map(|name| submit(&sqlite, move |connection| insert(connection, name)))
        .into();

    let refused = sqlite
        .write("item", |connection| insert(connection, "too many"))
        .now_or_never();
    assert_eq!(refused, Some(Err(Error::Overloaded)));

    stopped.release().await.unwrap();
    all_succeed(waiting).await;
    assert_eq!(names(&outside(&database)), ["a", "b", "c", "first"]);
}
