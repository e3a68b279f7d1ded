//! A database of the test's own.

use std::sync::Arc;

use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_store::{
    Postgres,
    postgres::Connector,
    testing::{PostgresDatabase, SqliteDatabase},
};

pub(crate) enum Database {
    Sqlite(SqliteDatabase),
    Postgres {
        database: PostgresDatabase,
        postgres: Postgres,
    },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(SqliteDatabase::new())
    }

    pub(crate) async fn postgres() -> Self {
        Self::of(PostgresDatabase::new(&[postgres::MIGRATIONS]).await).await
    }

    /// On a server of the test's own.
    pub(crate) async fn on(server: &str) -> Self {
        Self::of(PostgresDatabase::on(server, &[postgres::MIGRATIONS]).await).await
    }

    async fn of(database: PostgresDatabase) -> Self {
        Self::Postgres {
            postgres: database.open(&[postgres::MIGRATIONS]).await,
            database,
        }
    }

    /// A store with connections of its own: another node's.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(file) => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, system_clock()))
            }
            Self::Postgres { database, .. } => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                Arc::new(PostgresStore::new(postgres))
            }
        }
    }

    /// Only PostgreSQL has several nodes.
    pub(crate) fn connector(&self) -> Option<Connector> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres { postgres, .. } => Some(postgres.connector().clone()),
        }
    }

    /// Facts can be read but not saved until this is dropped.
    pub(crate) async fn block_saves(&self) -> Blocked {
        match self {
            Self::Sqlite(file) => {
                let connection = rusqlite::Connection::open(file.path()).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                Blocked::Sqlite {
                    _writer: connection,
                }
            }
            Self::Postgres { .. } => {
                let locker = self.session().await;
                let lock = "BEGIN; LOCK TABLE wakeline.feed_fact IN EXCLUSIVE MODE";
                locker.batch_execute(lock).await.unwrap();
                Blocked::Postgres { locker }
            }
        }
    }

    /// Only on PostgreSQL.
    pub(crate) async fn session(&self) -> tokio_postgres::Client {
        let connector = self.connector().expect("SQLite has no sessions");
        connector.connect().await.unwrap()
    }
}

pub(crate) enum Blocked {
    Sqlite { _writer: rusqlite::Connection },
    Postgres { locker: tokio_postgres::Client },
}

impl Blocked {
    /// Whether a save has got as far as the lock. SQLite does not say.
    pub(crate) async fn holds_somebody_up(&self) -> bool {
        match self {
            Self::Sqlite { .. } => true,
            Self::Postgres { locker } => {
                let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted
                    AND relation = 'wakeline.feed_fact'::regclass)";
                locker.query_one(waiting, &[]).await.unwrap().get(0)
            }
        }
    }
}
