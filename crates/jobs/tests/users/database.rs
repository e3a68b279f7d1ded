//! A database of the test's own, and what a test does to it past the store.

use std::sync::Arc;

use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;
use wakeline_jobs::store::{
    Users,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};

#[derive(Debug)]
pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        file: SqliteDatabase,
    },
    Postgres {
        postgres: Postgres,
        database: PostgresDatabase,
    },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let file = SqliteDatabase::new();
        Self::Sqlite {
            sqlite: file.open(&[sqlite::MIGRATIONS]),
            file,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let database = PostgresDatabase::new(&[postgres::MIGRATIONS]).await;
        Self::Postgres {
            postgres: database.open(&[postgres::MIGRATIONS]).await,
            database,
        }
    }

    /// A store with connections of its own: another node.
    pub(crate) async fn store(&self) -> Arc<dyn Users> {
        match self {
            Self::Sqlite { file, .. } => {
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, system_clock()))
            }
            Self::Postgres { database, .. } => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                Arc::new(PostgresStore::new(postgres))
            }
        }
    }

    pub(crate) async fn add_worker(&self, user: Uuid) -> Uuid {
        let worker = Uuid::new_v4();
        self.execute(
            "INSERT INTO jobs_worker (id, user_id, beat_at, created_at) VALUES (?1, ?2, 0, 0)",
            &[worker, user],
        )
        .await;
        worker
    }

    pub(crate) fn as_postgres(&self) -> Option<&Postgres> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { postgres, .. } => Some(postgres),
        }
    }

    pub(crate) async fn remove_worker(&self, worker: Uuid) {
        let sql = "DELETE FROM jobs_worker WHERE id = ?1";
        self.execute(sql, &[worker]).await;
    }

    async fn execute(&self, sql: &'static str, ids: &[Uuid]) {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let ids = ids.to_vec();
                sqlite
                    .write("test", move |connection| {
                        connection
                            .execute(sql, rusqlite::params_from_iter(ids))
                            .map_err(wakeline_store::Error::from)
                    })
                    .await
                    .unwrap();
            }
            Self::Postgres { postgres, .. } => {
                let sql = sql.replace('?', "$").replace("jobs_", "wakeline.jobs_");
                let typed = |id| (id as &(dyn ToSql + Sync), Type::UUID);
                let ids: Vec<_> = ids.iter().map(typed).collect();
                postgres.query("test", &sql, &ids).await.unwrap();
            }
        }
    }
}
