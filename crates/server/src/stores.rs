//! The database that all doors share.

mod files;

use std::{fmt, fs::File, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use wakeline_feed::store::{
    Store as FeedStore,
    postgres::{self as feed_postgres, PostgresStore as FeedPostgres},
    sqlite::{self as feed_sqlite, SqliteStore as FeedSqlite},
};
use wakeline_jobs::store::{
    postgres::{self as jobs_postgres, PostgresStore as JobsPostgres},
    sqlite::{self as jobs_sqlite, SqliteStore as JobsSqlite},
};
use wakeline_queue::{
    seal::{KeyFile, Sealer},
    store::{
        Store as QueueStore,
        postgres::{self as queue_postgres, PostgresStore},
        sqlite::{self as queue_sqlite, SqliteStore, system_clock},
    },
};
use wakeline_store::{Error, Postgres, Sqlite, postgres, sqlite};

use crate::config::{Config, Store};

/// The longest that a disk should take for a commit of SQLite.
const SLOW_COMMIT: Duration = Duration::from_secs(5);

/// Room for the log of SQLite once the disk is full: twice what the log usually has.
const RESERVE: u64 = 8 << 20;

#[derive(Clone)]
pub(crate) enum Stores {
    Sqlite {
        sqlite: Sqlite,
        /// Locked while the server runs: the file belongs to one process.
        _lock: Arc<File>,
    },
    Postgres {
        postgres: Postgres,
        /// The URL without its password.
        url: String,
    },
}

impl Stores {
    pub(crate) async fn open(config: &Config) -> Result<Self> {
        if let Some(file) = config.secrets_file() {
            files::check_secrets(file)?;
        }
        match &config.store {
            Store::Sqlite => Self::open_sqlite(config),
            Store::Postgres(url) => {
                files::tighten_results(&config.data);
                let options = postgres::Options {
                    connections: config.postgres.connections,
                    max_batch: config.postgres.max_batch,
                    max_pending: config.limits.pending_operations,
                    connect_timeout: config.postgres.connect_timeout,
                    statement_timeout: config.postgres.statement_timeout,
                };
                let postgres = Postgres::open(
                    url.expose(),
                    &options,
                    &[
                        queue_postgres::MIGRATIONS,
                        jobs_postgres::MIGRATIONS,
                        feed_postgres::MIGRATIONS,
                    ],
                )
                .await
                .with_context(|| format!("store (--store {url})"))?;
                queue_postgres::set_notify_channel(&postgres, &config.bus.channel)
                    .await
                    .with_context(|| format!("store (--store {url})"))?;
                Ok(Self::Postgres {
                    postgres,
                    url: url.to_string(),
                })
            }
        }
    }

    fn open_sqlite(config: &Config) -> Result<Self> {
        files::make_directory(&config.data)
            .with_context(|| format!("data: cannot make {}", config.data.display()))?;
        // Before its files are made: nobody can open one meanwhile.
        files::tighten_data(&config.data);
        let open = |name: &str| {
            let path = config.data.join(name);
            let file = files::open_file(&path)
                .with_context(|| format!("data: cannot write {}", path.display()))?;
            anyhow::Ok((file, path))
        };
        let (lock, _) = open(files::LOCK)?;
        if lock.try_lock().is_err() {
            bail!(
                "data: another wakeline serves {}; give this one its own --data, or run several \
                 nodes on PostgreSQL (--store postgres://…)",
                config.data.display()
            );
        }
        let options = sqlite::Options {
            readers: config.sqlite.readers,
            max_batch: config.sqlite.max_batch,
            max_pending: config.limits.pending_operations,
            busy_timeout: config.sqlite.busy_timeout,
            reserve: RESERVE,
        };
        // SQLite gives the log and its index the mode of the file.
        let (_, path) = open(files::DATABASE)?;
        let sqlite = Sqlite::open(
            &path,
            &options,
            &[
                queue_sqlite::MIGRATIONS,
                jobs_sqlite::MIGRATIONS,
                feed_sqlite::MIGRATIONS,
            ],
        )
        .context("data")?;
        Ok(Self::Sqlite {
            sqlite,
            _lock: Arc::new(lock),
        })
    }

    pub(crate) fn queue(&self) -> Arc<dyn QueueStore> {
        match self {
            Self::Sqlite { sqlite, .. } => {
                Arc::new(SqliteStore::new(sqlite.clone(), system_clock()))
            }
            Self::Postgres { postgres, .. } => Arc::new(PostgresStore::new(postgres.clone())),
        }
    }

    /// The keys of sealed messages, and where the server may make one. On PostgreSQL it makes none:
    /// all nodes need the same.
    pub(crate) fn encryption(&self, config: &Config) -> Result<(Option<Sealer>, Option<KeyFile>)> {
        let configured = config.queue.encryption_key.as_ref();
        let configured = configured.and_then(|keys| Sealer::from_hex(keys.expose()));
        let Self::Sqlite { .. } = self else {
            return Ok((configured, None));
        };
        let file = KeyFile::in_directory(&config.data);
        let path = file.path().display().to_string();
        let made = file.read().with_context(|| format!("data: {path}"))?;
        let sealer = match (configured, made) {
            (Some(configured), Some(made)) => Some(configured.and(made)),
            (configured, made) => configured.or(made),
        };
        Ok((sealer, Some(file)))
    }

    pub(crate) fn jobs(&self) -> JobsStores {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let clock = jobs_sqlite::system_clock();
                JobsStores::of(Arc::new(JobsSqlite::new(sqlite.clone(), clock)))
            }
            Self::Postgres { postgres, .. } => {
                JobsStores::of(Arc::new(JobsPostgres::new(postgres.clone())))
            }
        }
    }

    pub(crate) fn feeds(&self) -> Arc<dyn FeedStore> {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let clock = feed_sqlite::system_clock();
                Arc::new(FeedSqlite::new(sqlite.clone(), clock))
            }
            Self::Postgres { postgres, .. } => Arc::new(FeedPostgres::new(postgres.clone())),
        }
    }

    pub(crate) fn postgres(&self) -> Option<&Postgres> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { postgres, .. } => Some(postgres),
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "sqlite",
            Self::Postgres { .. } => "postgres",
        }
    }

    /// Whether the database answers.
    pub(crate) async fn ping(&self) -> Result<(), Error> {
        match self {
            Self::Sqlite { sqlite, .. } => sqlite.ping().await,
            Self::Postgres { postgres, .. } => postgres.ping().await,
        }
    }
}

/// After so long a write that was sent to the database has ended: committed, refused or given up.
/// PostgreSQL ends a statement itself, and the store gives up an answer that is overdue by more than
/// the connect timeout.
pub(crate) fn longest_write(config: &Config) -> Duration {
    match config.store {
        Store::Sqlite => config.sqlite.busy_timeout + SLOW_COMMIT,
        Store::Postgres(_) => config.postgres.statement_timeout + config.postgres.connect_timeout,
    }
}

/// The stores of the jobs door, all of them the same database.
#[derive(Clone, Debug)]
pub(crate) struct JobsStores {
    pub(crate) store: Arc<dyn wakeline_jobs::store::Store>,
    pub(crate) users: Arc<dyn wakeline_jobs::store::Users>,
    pub(crate) frames: Arc<dyn wakeline_jobs::store::frames::Frames>,
    pub(crate) results: Arc<dyn wakeline_jobs::results::ResultBackend>,
}

impl JobsStores {
    fn of<S>(store: Arc<S>) -> Self
    where
        S: wakeline_jobs::store::Store
            + wakeline_jobs::store::Users
            + wakeline_jobs::store::frames::Frames
            + wakeline_jobs::results::ResultBackend
            + 'static,
    {
        Self {
            store: store.clone(),
            users: store.clone(),
            frames: store.clone(),
            results: store,
        }
    }
}

impl fmt::Display for Stores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { sqlite, .. } => write!(out, "SQLite, {}", sqlite.path().display()),
            Self::Postgres { url, .. } => write!(out, "PostgreSQL, {url}"),
        }
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
