//! A place of the test's own, and what a test does to it past the trait.

use std::{fs, io::ErrorKind, os::unix::fs::FileExt, path::PathBuf, sync::Arc, time::Duration};

use axum::body::Body;
use tempfile::TempDir;
use uuid::Uuid;
use wakeline_jobs::{
    provider::{Answer, AnswerBody, Key, Request},
    results::{Kept, Look, Memory, Results, Upload, files::Files, redis::Redis},
    store::{
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_store::testing::{PostgresDatabase, SqliteDatabase};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const SHORT: Duration = Duration::from_millis(30);
pub(crate) const LIMIT: u64 = 16 << 20;
/// More than any test but its own fills.
const CAP: u64 = 1 << 30;

const REDIS: &str = "WAKELINE_TEST_REDIS";
const TABLES: [&str; 2] = ["jobs_result", "jobs_mark"];

pub(crate) enum Place {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
    Redis {
        url: String,
        prefix: String,
    },
    Files {
        directory: TempDir,
        marks: Box<Self>,
    },
}

impl Place {
    pub(crate) async fn sqlite() -> Self {
        Self::Sqlite(SqliteDatabase::new())
    }

    pub(crate) async fn postgres() -> Self {
        Self::Postgres(PostgresDatabase::new(&[postgres::MIGRATIONS]).await)
    }

    pub(crate) async fn redis() -> Self {
        let url = std::env::var(REDIS).unwrap_or_else(|_| {
            panic!(
                "{REDIS} is not set: run the tests by `cargo xtask test`, or point it at a Redis"
            )
        });
        Self::on_redis(&url)
    }

    pub(crate) fn on_redis(url: &str) -> Self {
        Self::Redis {
            url: url.to_owned(),
            prefix: format!("wakeline-test-{}:", Uuid::new_v4()),
        }
    }

    pub(crate) async fn files_over_sqlite() -> Self {
        Self::files_over(Self::sqlite().await)
    }

    pub(crate) async fn files_over_postgres() -> Self {
        Self::files_over(Self::postgres().await)
    }

    fn files_over(marks: Self) -> Self {
        Self::Files {
            directory: tempfile::tempdir().unwrap(),
            marks: Box::new(marks),
        }
    }

    /// With connections of its own: another node.
    pub(crate) async fn node(&self) -> Arc<dyn Results> {
        self.node_with_cap(CAP).await
    }

    pub(crate) async fn node_with_cap(&self, cap: u64) -> Arc<dyn Results> {
        match self {
            Self::Sqlite(file) => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, system_clock()))
            }
            Self::Postgres(database) => Arc::new(PostgresStore::new(
                database.open(&[postgres::MIGRATIONS]).await,
            )),
            Self::Redis { url, prefix } => Arc::new(Redis::new(url, prefix).unwrap()),
            Self::Files { directory, marks } => {
                let marks = Box::pin(marks.node()).await;
                Arc::new(Files::open(&directory.path().join("answers"), cap, marks).unwrap())
            }
        }
    }

    /// Where the files are.
    pub(crate) fn files(&self) -> PathBuf {
        match self {
            Self::Files { directory, .. } => directory.path().join("answers"),
            _ => panic!("there are none"),
        }
    }

    /// How many rows, keys or files there are, those included that nobody would find.
    pub(crate) async fn stored(&self) -> usize {
        match self {
            Self::Sqlite(file) => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                let count = sqlite.read("test", |connection| {
                    let mut all = 0_i64;
                    for table in TABLES {
                        let sql = format!("SELECT count(*) FROM {table}");
                        all += connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
                    }
                    Ok::<_, wakeline_store::Error>(all)
                });
                usize::try_from(count.await.unwrap()).unwrap()
            }
            Self::Postgres(database) => {
                let postgres = database.open(&[]).await;
                let mut all = 0_i64;
                for table in TABLES {
                    let sql = format!("SELECT count(*) FROM wakeline.{table}");
                    let rows = postgres.query("test", &sql, &[]).await.unwrap();
                    all += rows[0].get::<_, i64>(0);
                }
                usize::try_from(all).unwrap()
            }
            Self::Redis { url, prefix } => {
                let client = redis::Client::open(url.as_str()).unwrap();
                let mut connection = client.get_multiplexed_async_connection().await.unwrap();
                let mut keys = redis::cmd("KEYS");
                keys.arg(format!("{prefix}*"));
                let keys: Vec<String> = keys.query_async(&mut connection).await.unwrap();
                keys.len()
            }
            Self::Files { marks, .. } => {
                let files = match fs::read_dir(self.files()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => 0,
                    entries => entries.unwrap().count(),
                };
                files + Box::pin(marks.stored()).await
            }
        }
    }
}

pub(crate) fn key(hash: &str) -> Key {
    of_version(1, hash)
}

pub(crate) fn of_version(version: i64, hash: &str) -> Key {
    Key {
        provider: PROVIDER,
        version,
        hash: hash.to_owned(),
    }
}

pub(crate) const PROVIDER: Uuid = Uuid::from_u128(0x5eed);
pub(crate) const OTHER: Uuid = Uuid::from_u128(0xface);

pub(crate) fn request(key: &Key) -> Request {
    Request {
        key: key.clone(),
        token: Uuid::new_v4(),
        params: format!(r#"{{"path":"/{}/ä"}}"#, key.hash),
    }
}

pub(crate) fn upload(body: impl Into<Body>) -> Upload {
    Upload {
        is_error: false,
        body: body.into(),
        limit: LIMIT,
        patience: LONG,
        memory: Memory::new(u64::MAX),
    }
}

pub(crate) async fn put(place: &dyn Results, key: &Key, body: impl Into<Body>, ttl: Duration) {
    let kept = place.put(key.clone(), upload(body), ttl).await.unwrap();
    assert_eq!(kept, Kept::Done);
}

pub(crate) async fn begin(place: &dyn Results, key: &Key, ttl: Duration) -> bool {
    place.begin(request(key), ttl).await.unwrap()
}

pub(crate) async fn look(place: &dyn Results, key: &Key) -> Look {
    let mut looks = place.look(vec![key.clone()]).await.unwrap();
    assert_eq!(looks.len(), 1);
    looks.remove(0)
}

pub(crate) async fn answer(place: &dyn Results, key: &Key) -> Option<Answer> {
    look(place, key).await.answer
}

/// The bytes of the answer, if there is one.
pub(crate) async fn found(place: &dyn Results, key: &Key) -> Option<Vec<u8>> {
    answer(place, key).await.as_ref().map(bytes)
}

pub(crate) fn bytes(answer: &Answer) -> Vec<u8> {
    match &answer.body {
        AnswerBody::Bytes(bytes) => bytes.to_vec(),
        AnswerBody::File(file, length) => {
            let mut bytes = vec![0; usize::try_from(*length).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        }
    }
}
