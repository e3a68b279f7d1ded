//! A result backend of the test's own, and the steps of tests that bypass its trait.

use std::{
    fs, io::ErrorKind, ops::Deref, os::unix::fs::FileExt, path::PathBuf, sync::Arc, time::Duration,
};

use axum::body::Body;
use tempfile::TempDir;
use uuid::Uuid;
use wakeline_bus::Wakes;
use wakeline_jobs::{
    provider::{Answer, AnswerBody, AnswerKey, ProviderRequest},
    results::{
        AnswerState, ResultBackend, Upload, UploadMemory, UploadOutcome, files::Files, redis::Redis,
    },
    store::{
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_testkit::{CommitAlone, DatabaseKind, OpenStore, TestDatabase, local_bus};

pub(crate) const LONG: Duration = Duration::from_secs(60);
pub(crate) const SHORT: Duration = Duration::from_millis(30);
pub(crate) const LIMIT: u64 = 16 << 20;
/// A cap that only its own test reaches.
const CAP: u64 = 1 << 30;

const REDIS: &str = "WAKELINE_TEST_REDIS";
const TABLES: [&str; 4] = ["jobs_result", "jobs_inflight", "jobs_upload", "jobs_chunk"];

pub(crate) enum TestBackend {
    Database(TestDatabase),
    Redis {
        url: String,
        prefix: String,
    },
    Files {
        directory: TempDir,
        locks: Box<Self>,
    },
}

impl TestBackend {
    pub(crate) async fn sqlite() -> Self {
        Self::on_database(DatabaseKind::Sqlite).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::on_database(DatabaseKind::Postgres).await
    }

    async fn on_database(kind: DatabaseKind) -> Self {
        Self::Database(TestDatabase::new(kind, sqlite::MIGRATIONS, postgres::MIGRATIONS).await)
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

    fn files_over(locks: Self) -> Self {
        Self::Files {
            directory: tempfile::tempdir().unwrap(),
            locks: Box::new(locks),
        }
    }

    /// A backend with connections of its own: another node.
    pub(crate) async fn node(&self) -> Arc<dyn ResultBackend> {
        self.node_with_cap(CAP).await
    }

    pub(crate) async fn node_with_cap(&self, cap: u64) -> Arc<dyn ResultBackend> {
        match self {
            Self::Database(database) => match database.open().await {
                OpenStore::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite, system_clock())),
                OpenStore::Postgres(postgres) => Arc::new(PostgresStore::new(postgres)),
            },
            Self::Redis { url, prefix } => Arc::new(Redis::new(url, prefix).unwrap()),
            Self::Files { directory, locks } => {
                let locks = Box::pin(locks.node()).await;
                let directory = directory.path().join("answers");
                Arc::new(Files::open(&directory, cap, locks, local_bus()).unwrap())
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

    /// The number of rows, keys or files, including those that no read finds.
    pub(crate) async fn stored(&self) -> usize {
        match self {
            Self::Database(database) => {
                let mut all = 0;
                for table in TABLES {
                    all += database.count(table).await;
                }
                usize::try_from(all).unwrap()
            }
            Self::Redis { url, prefix } => {
                let all = format!("{prefix}*");
                query::<Vec<String>>(url, redis::cmd("KEYS").arg(all))
                    .await
                    .len()
            }
            Self::Files { locks, .. } => {
                let files = match fs::read_dir(self.files()) {
                    Err(error) if error.kind() == ErrorKind::NotFound => 0,
                    entries => entries.unwrap().count(),
                };
                files + Box::pin(locks.stored()).await
            }
        }
    }
}

/// A node, and the backend of its own that it has.
pub(crate) struct TestNode {
    pub(crate) node: Arc<dyn ResultBackend>,
    pub(crate) backend: TestBackend,
}

impl TestNode {
    pub(crate) async fn new(backend: TestBackend) -> Self {
        let node = backend.node().await;
        Self { node, backend }
    }
}

impl Deref for TestNode {
    type Target = dyn ResultBackend;

    fn deref(&self) -> &Self::Target {
        &*self.node
    }
}

/// Steps on the chunks of large answers.
impl TestBackend {
    /// Deletes one chunk of each upload.
    pub(crate) async fn lose_a_chunk(&self, number: i64) {
        match self {
            Self::Redis { url, prefix } => {
                for upload in uploads(url, prefix).await {
                    let mut lose = redis::cmd("HDEL");
                    lose.arg(upload).arg(number);
                    query::<i64>(url, &lose).await;
                }
            }
            _ => {
                let sql = format!("DELETE FROM jobs_chunk WHERE number = {number}");
                self.run(sql).await;
            }
        }
    }

    pub(crate) async fn uploads_end_in(&self, left: Duration) {
        let micros = left.as_micros();
        match self {
            Self::Redis { url, prefix } => {
                for upload in uploads(url, prefix).await {
                    let mut end = redis::cmd("PEXPIRE");
                    end.arg(upload).arg(micros / 1_000);
                    query::<i64>(url, &end).await;
                }
            }
            _ => {
                let now = self.now();
                self.run(format!(
                    "UPDATE jobs_upload SET expires_at = {now} + {micros}"
                ))
                .await;
            }
        }
    }

    /// The time until all uploads expire; `None` if there are none.
    pub(crate) async fn uploads_end(&self) -> Option<Duration> {
        let now = self.now();
        // SQLite's own clock is up to a millisecond behind that of the store.
        let behind = if self.is_sqlite() { 1_000 } else { 0 };
        let sql = format!("SELECT max(expires_at) - {now} - {behind} FROM jobs_upload");
        let left: Option<i64> = match self {
            Self::Database(database) => database.optional_number(&sql).await,
            Self::Redis { url, prefix } => {
                let mut most = None;
                for upload in uploads(url, prefix).await {
                    let left = query::<i64>(url, redis::cmd("PTTL").arg(upload)).await;
                    most = most.max(Some(left * 1_000));
                }
                most
            }
            Self::Files { .. } => panic!("there are none"),
        };
        left.map(|left| Duration::from_micros(u64::try_from(left).unwrap_or(0)))
    }

    fn is_sqlite(&self) -> bool {
        matches!(self, Self::Database(database) if !database.is_postgres())
    }

    /// Microseconds since 1970, as the database computes them.
    fn now(&self) -> &'static str {
        match self {
            Self::Database(database) if database.is_postgres() => "jobs_now()",
            _ => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        }
    }

    async fn run(&self, sql: String) {
        match self {
            Self::Database(database) => database.execute(&sql).await,
            Self::Redis { .. } | Self::Files { .. } => panic!("no SQL there"),
        }
    }
}

async fn query<T: redis::FromRedisValue>(url: &str, command: &redis::Cmd) -> T {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    command.query_async(&mut connection).await.unwrap()
}

async fn uploads(url: &str, prefix: &str) -> Vec<String> {
    query(url, redis::cmd("KEYS").arg(format!("{prefix}upload:*"))).await
}

pub(crate) fn key(hash: &str) -> AnswerKey {
    of_version(1, hash)
}

pub(crate) fn of_version(version: i64, hash: &str) -> AnswerKey {
    AnswerKey {
        provider: PROVIDER,
        version,
        hash: hash.to_owned(),
    }
}

pub(crate) const PROVIDER: Uuid = Uuid::from_u128(0x5eed);
pub(crate) const OTHER: Uuid = Uuid::from_u128(0xface);

pub(crate) fn request(key: &AnswerKey) -> ProviderRequest {
    ProviderRequest {
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
        memory: UploadMemory::new(u64::MAX),
    }
}

pub(crate) async fn put(
    backend: &dyn ResultBackend,
    key: &AnswerKey,
    body: impl Into<Body>,
    ttl: Duration,
) {
    let kept = backend
        .put(key.clone(), upload(body), ttl, Wakes::none())
        .done()
        .await;
    assert_eq!(kept, UploadOutcome::Done);
}

pub(crate) async fn begin(backend: &dyn ResultBackend, key: &AnswerKey, ttl: Duration) -> bool {
    backend.begin(request(key), ttl).done().await
}

pub(crate) async fn state(backend: &dyn ResultBackend, key: &AnswerKey) -> AnswerState {
    let mut looks = backend.get(vec![key.clone()]).await.unwrap();
    assert_eq!(looks.len(), 1);
    looks.remove(0)
}

pub(crate) async fn answer(backend: &dyn ResultBackend, key: &AnswerKey) -> Option<Answer> {
    state(backend, key).await.answer
}

/// The bytes of the answer, if there is one.
pub(crate) async fn found(backend: &dyn ResultBackend, key: &AnswerKey) -> Option<Vec<u8>> {
    match answer(backend, key).await {
        Some(answer) => Some(bytes(&answer).await),
        None => None,
    }
}

pub(crate) async fn bytes(answer: &Answer) -> Vec<u8> {
    match &answer.body {
        AnswerBody::Bytes(bytes) => bytes.to_vec(),
        AnswerBody::File(file, length) => {
            let mut bytes = vec![0; usize::try_from(*length).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        }
        AnswerBody::Chunks(chunked) => chunked.clone().whole().await.unwrap().to_vec(),
    }
}
