//! A database of the test's own.

use std::sync::Arc;

use wakeline_jobs::{
    results::Results,
    store::{
        Store, Users, frames,
        postgres::{self, PostgresStore},
        sqlite::{self, SqliteStore, system_clock},
    },
};
use wakeline_store::{
    Postgres,
    testing::{PostgresDatabase, SqliteDatabase},
};

pub(crate) enum Database {
    Sqlite(SqliteDatabase),
    Postgres(PostgresDatabase),
}

/// See [`Database::block`].
#[allow(dead_code, reason = "they are kept until they are dropped")]
pub(crate) enum Block {
    Sqlite(rusqlite::Connection),
    Postgres(tokio_postgres::Client),
}

/// What one node keeps where, all of it in one store.
pub(crate) struct Stores {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) users: Arc<dyn Users>,
    pub(crate) frames: Arc<dyn frames::Frames>,
    pub(crate) results: Arc<dyn Results>,
    pub(crate) postgres: Option<Postgres>,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(SqliteDatabase::new())
    }

    pub(crate) async fn postgres() -> Self {
        Self::Postgres(PostgresDatabase::new(&[postgres::MIGRATIONS]).await)
    }

    /// Runs statements past the store, those of this database.
    pub(crate) async fn run(&self, sqlite: &'static str, postgres: &str) {
        match self {
            Self::Sqlite(file) => {
                let handle = file.open(&[sqlite::MIGRATIONS]);
                let done = handle.write("test", |connection| {
                    connection.execute_batch(sqlite)?;
                    Ok::<_, wakeline_store::Error>(())
                });
                done.await.unwrap();
            }
            Self::Postgres(database) => {
                let connections = database.open(&[]).await;
                let client = connections.connector().connect().await.unwrap();
                client.batch_execute(postgres).await.unwrap();
            }
        }
    }

    /// Keeps every write from its commit until it is dropped.
    pub(crate) async fn block(&self) -> Block {
        match self {
            Self::Sqlite(file) => {
                let writer = rusqlite::Connection::open(file.path()).unwrap();
                writer.execute_batch("BEGIN IMMEDIATE").unwrap();
                Block::Sqlite(writer)
            }
            Self::Postgres(database) => {
                let connections = database.open(&[]).await;
                let client = connections.connector().connect().await.unwrap();
                let tables = "BEGIN; LOCK TABLE wakeline.jobs_task, wakeline.jobs_worker, \
                    wakeline.jobs_result IN EXCLUSIVE MODE";
                client.batch_execute(tables).await.unwrap();
                Block::Postgres(client)
            }
        }
    }

    /// How many answers there are, those included that nobody would find.
    pub(crate) async fn answers(&self) -> i64 {
        match self {
            Self::Sqlite(file) => {
                let handle = file.open(&[sqlite::MIGRATIONS]);
                let count = handle.read("test", |connection| {
                    let sql = "SELECT count(*) FROM jobs_result";
                    let count = connection.query_row(sql, [], |row| row.get(0))?;
                    Ok::<_, wakeline_store::Error>(count)
                });
                count.await.unwrap()
            }
            Self::Postgres(database) => {
                let sql = "SELECT count(*) FROM wakeline.jobs_result";
                let rows = database.open(&[]).await.query("test", sql, &[]).await;
                rows.unwrap()[0].get(0)
            }
        }
    }

    /// With connections of its own.
    pub(crate) async fn open(&self) -> Stores {
        match self {
            Self::Sqlite(file) => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                let store = SqliteStore::new(sqlite, system_clock());
                Stores::of(Arc::new(store), None)
            }
            Self::Postgres(database) => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                let store = PostgresStore::new(postgres.clone());
                Stores::of(Arc::new(store), Some(postgres))
            }
        }
    }
}

impl Stores {
    fn of<S>(store: Arc<S>, postgres: Option<Postgres>) -> Self
    where
        S: Store + Users + frames::Frames + Results + 'static,
    {
        Self {
            store: store.clone(),
            users: store.clone(),
            frames: store.clone(),
            results: store,
            postgres,
        }
    }
}
