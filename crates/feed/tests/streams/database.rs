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

    /// Only on PostgreSQL.
    pub(crate) async fn session(&self) -> tokio_postgres::Client {
        let connector = self.connector().expect("SQLite has no sessions");
        connector.connect().await.unwrap()
    }
}
