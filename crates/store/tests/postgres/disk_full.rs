//! A server with a full disk: writes are refused, reads and deletes are served, and it recovers by
//! itself.

use futures_util::future::{BoxFuture, join_all};
use tokio_postgres::{Client, types::Type};
use wakeline_store::{
    Error, Migrations, Postgres,
    postgres::{Batch, Batcher, Options, RunError, Weigh},
};
use wakeline_testbed::{Postgres as Server, SmallDisk};
use wakeline_testkit::eventually;

use crate::fixture::number;

const LOAD: Migrations = Migrations {
    door: "load",
    steps: &[
        "CREATE TABLE wakeline.load (name bigserial PRIMARY KEY, body text NOT NULL);
        ALTER TABLE wakeline.load ALTER body SET STORAGE EXTERNAL",
    ],
};
const LARGE: Bytes = Bytes(100_000);
const SMALL: Bytes = Bytes(1);

/// The length of a row.
#[derive(Clone, Copy, Debug)]
struct Bytes(i32);

impl Weigh for Bytes {}

struct Insert;

impl Batch for Insert {
    type Operation = Bytes;
    type Output = i64;

    const KIND: &'static str = "load";

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Bytes],
    ) -> BoxFuture<'a, Result<Vec<i64>, RunError>> {
        let sizes: Vec<i32> = operations.iter().map(|bytes| bytes.0).collect();
        Box::pin(async move {
            let insert = "INSERT INTO wakeline.load (body)
                SELECT repeat('x', size) FROM unnest($1) AS size RETURNING name";
            let rows = client
                .query_typed(insert, &[(&sizes, Type::INT4_ARRAY)])
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

struct FullDisk {
    postgres: Postgres,
    batcher: Batcher<Insert>,
    acknowledged: i64,
    // Before the disk: a server that loses its files is slow to end.
    _server: Server,
    disk: SmallDisk,
}

impl FullDisk {
    async fn new() -> Self {
        let disk = SmallDisk::mount(64).unwrap();
        let server = Server::start().unwrap();
        let url = server.database_on(&disk).unwrap();
        let options = Options::default();
        let postgres = Postgres::open(&url, &options, &[LOAD]).await.unwrap();
        let batcher = Batcher::start(&postgres, Insert, 1);
        batcher.submit(SMALL).await.unwrap();
        disk.fill_but(3 << 20).unwrap();
        let mut acknowledged = 1;
        let error = loop {
            match batcher.submit(LARGE).await {
                Ok(_) => acknowledged += 1,
                Err(error) => break error,
            }
            assert!(acknowledged < 1_000, "the disk is never full");
        };
        assert!(error.is_disk_full(), "{error:?}");
        Self {
            postgres,
            batcher,
            acknowledged,
            _server: server,
            disk,
        }
    }

    async fn count(&self) -> i64 {
        number(&self.postgres, "SELECT count(*) FROM wakeline.load").await
    }
}

#[tokio::test]
async fn a_refused_write_is_not_stored_and_reads_and_deletes_are_served() {
    let full = FullDisk::new().await;
    assert_eq!(full.count().await, full.acknowledged);
    let error = full.postgres.ping().await.unwrap_err();
    assert!(error.is_disk_full(), "{error:?}");
    let delete = "DELETE FROM wakeline.load";
    full.postgres.query("delete", delete, &[]).await.unwrap();
    assert_eq!(full.count().await, 0);
}

#[tokio::test]
async fn an_operation_that_needs_no_space_is_not_refused_with_its_neighbours() {
    let full = FullDisk::new().await;
    // On one thread they are all submitted before the batch begins.
    let together = [SMALL, LARGE, SMALL, LARGE, SMALL];
    let results = join_all(together.map(|bytes| full.batcher.submit(bytes))).await;
    for (bytes, result) in together.iter().zip(&results) {
        let is_full = result.as_ref().is_err_and(Error::is_disk_full);
        assert_eq!(is_full, bytes.0 == LARGE.0, "{results:?}");
    }
    assert_eq!(full.count().await, full.acknowledged + 3);
}

#[tokio::test]
async fn writes_work_again_and_the_store_reports_it_when_there_is_space() {
    let full = FullDisk::new().await;
    full.postgres.ping().await.unwrap_err();

    full.disk.empty().unwrap();

    eventually("the server has room", async || {
        full.postgres.ping().await.is_ok()
    })
    .await;
    full.batcher.submit(LARGE).await.unwrap();
}
