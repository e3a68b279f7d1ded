//! A full disk: inserts are refused, other operations are served, and the store recovers by itself.

use std::path::PathBuf;

use rusqlite::Connection;
use wakeline_store::{Error, Sqlite, sqlite::Options};
use wakeline_testbed::SmallDisk;
use wakeline_testkit::eventually;

use crate::fixture::{ITEMS, Pending, insert, is_pending, names, submit};

const MIB: u64 = 1 << 20;
const DISK: u32 = 24;
const LARGE: usize = 200_000;

/// A store on a disk of its own.
struct FullDisk {
    sqlite: Sqlite,
    disk: SmallDisk,
    /// The rows that were acknowledged until the disk was full.
    rows: Vec<String>,
}

fn path(disk: &SmallDisk) -> PathBuf {
    disk.path().join("wakeline.db")
}

fn open(disk: &SmallDisk) -> Sqlite {
    let options = Options {
        reserve: 6 * MIB,
        ..Options::default()
    };
    Sqlite::open(&path(disk), &options, &[ITEMS]).unwrap()
}

async fn insert_large(sqlite: &Sqlite, name: &str) -> Result<usize, Error> {
    let name = format!("{name} {}", "x".repeat(LARGE));
    let inserting = sqlite.write("insert", move |connection| insert(connection, &name));
    inserting.await
}

impl FullDisk {
    async fn new() -> Self {
        let disk = SmallDisk::mount(DISK).unwrap();
        let sqlite = open(&disk);
        // The reserve is there.
        insert_large(&sqlite, "first").await.unwrap();
        disk.fill_but(4 * MIB).unwrap();
        let mut rows = vec!["first".to_owned()];
        let error = loop {
            let name = format!("row {}", rows.len());
            match insert_large(&sqlite, &name).await {
                Ok(_) => rows.push(name),
                Err(error) => break error,
            }
            assert!(rows.len() < 1_000, "the disk is never full");
        };
        assert!(error.is_disk_full(), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the database has no room for it; nothing was done, try again later (the disk is full: \
             database or disk is full)"
        );
        Self { sqlite, disk, rows }
    }

    async fn write(&self, sql: &'static str) -> Result<usize, Error> {
        let writing = self.sqlite.write("write", move |connection| {
            Ok::<_, Error>(connection.execute(sql, [])?)
        });
        writing.await
    }

    async fn names(&self) -> Vec<String> {
        let reading = self.sqlite.read::<_, Error>("names", |connection| {
            let names = names(connection).into_iter();
            Ok(names
                .map(|name| name.trim_end_matches(['x', ' ']).to_owned())
                .collect())
        });
        reading.await.unwrap()
    }
}

#[tokio::test]
async fn refused_writes_are_not_stored_and_acknowledged_ones_are() {
    let mut full = FullDisk::new().await;
    full.rows.sort();
    assert_eq!(full.names().await, full.rows);
    let path = path(&full.disk);
    drop(full.sqlite);
    // The rows as another process reads them.
    assert_eq!(
        names(&Connection::open(path).unwrap()).len(),
        full.rows.len()
    );
}

#[tokio::test]
async fn updates_deletes_and_reads_are_served_while_inserts_are_refused() {
    let full = FullDisk::new().await;
    // More than the log and the reserve have room for, if the log did not begin anew.
    for _ in 0..3_000 {
        full.write("UPDATE item SET amount = amount + 1")
            .await
            .unwrap();
    }
    let refused = insert_large(&full.sqlite, "refused").await.unwrap_err();
    assert!(refused.is_disk_full(), "{refused:?}");
    assert_eq!(full.names().await.len(), full.rows.len());
    assert!(full.sqlite.ping().await.unwrap_err().is_disk_full());

    let deleted = full.write("DELETE FROM item").await;
    assert_eq!(deleted, Ok(full.rows.len()));
    // The insert uses the pages that were freed.
    insert_large(&full.sqlite, "fits").await.unwrap();
    assert_eq!(full.names().await, ["fits"]);
}

#[tokio::test]
async fn a_refused_insert_fails_no_other_operation_of_its_commit() {
    let full = FullDisk::new().await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (arrive, arrived) = std::sync::mpsc::channel();
    let mut first = submit(&full.sqlite, move |connection| {
        arrive.send(()).unwrap();
        released.recv().unwrap();
        Ok(connection.execute("UPDATE item SET amount = 2", [])?)
    });
    arrived.recv().unwrap();
    let large = format!("large {}", "x".repeat(LARGE));
    let refused = submit(&full.sqlite, move |connection| insert(connection, &large));
    let last: Pending<usize> = submit(&full.sqlite, |connection| {
        Ok(connection.execute("UPDATE item SET amount = amount + 1", [])?)
    });
    assert!(is_pending(&mut first));

    release.send(()).unwrap();

    assert_eq!(first.await, Ok(full.rows.len()));
    assert!(refused.await.unwrap_err().is_disk_full());
    assert_eq!(last.await, Ok(full.rows.len()));
    let threes = full.sqlite.read::<i64, Error>("count", |connection| {
        let sql = "SELECT count(*) FROM item WHERE amount = 3";
        Ok(connection.query_row(sql, [], |row| row.get(0))?)
    });
    assert_eq!(threes.await, Ok(full.rows.len() as i64));
}

#[tokio::test]
async fn inserts_are_served_and_the_reserve_is_restored_when_there_is_space() {
    let full = FullDisk::new().await;
    let reserve = full.disk.path().join("wakeline.db-reserve");
    assert!(!reserve.exists(), "its room was not given back");

    full.disk.empty().unwrap();

    eventually("the store sees the room", async || {
        full.sqlite.ping().await.is_ok()
    })
    .await;
    assert_eq!(reserve.metadata().unwrap().len(), 6 * MIB);
    for number in 0..10 {
        let name = format!("again {number}");
        insert_large(&full.sqlite, &name).await.unwrap();
    }
    assert_eq!(full.names().await.len(), full.rows.len() + 10);
}

#[tokio::test]
async fn a_store_opened_on_a_full_disk_serves_reads_updates_and_deletes() {
    let full = FullDisk::new().await;
    drop(full.sqlite);
    let log = full.disk.path().join("wakeline.db-wal");
    eventually("the file is closed", async || !log.exists()).await;
    full.disk.fill_but(MIB).unwrap();
    let sqlite = open(&full.disk);
    eventually("the store sees that the disk is full", async || {
        let pinged = sqlite.ping().await;
        pinged.is_err_and(|error| error.is_disk_full())
    })
    .await;
    let deleted = sqlite.write("delete", |connection| {
        Ok::<_, Error>(connection.execute("DELETE FROM item", [])?)
    });
    assert_eq!(deleted.await, Ok(full.rows.len()));
}
