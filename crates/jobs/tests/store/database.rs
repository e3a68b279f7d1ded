//! A database of the test's own, and what a test does to it past the store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio_postgres::{
    Client,
    types::{ToSql, Type},
};
use uuid::Uuid;
use wakeline_jobs::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};

/// Where SQLite's clock begins: anything but zero.
const BEGINNING: i64 = 1_700_000_000_000_000;

/// What the sweep measures time by.
const TIMES: [&str; 4] = [
    "jobs_worker SET beat_at = beat_at",
    "jobs_task SET completed_at = completed_at",
    "jobs_task SET started_at = started_at",
    "jobs_task SET created_at = created_at",
];

pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        file: SqliteDatabase,
        /// Microseconds since 1970. It goes on by one with every look at it, so that what is made
        /// later is newer, as on PostgreSQL.
        clock: Arc<AtomicI64>,
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
            clock: Arc::new(AtomicI64::new(BEGINNING)),
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
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite { file, clock, .. } => {
                let clock = clock.clone();
                let clock = move || clock.fetch_add(1, Ordering::Relaxed);
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, Arc::new(clock)))
            }
            Self::Postgres { database, .. } => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                Arc::new(PostgresStore::new(postgres))
            }
        }
    }

    /// Lets `time` pass without waiting for it. PostgreSQL's clock cannot be set, so what there is
    /// becomes older instead.
    pub(crate) async fn pass(&self, time: Duration) {
        let micros = i64::try_from(time.as_micros()).unwrap();
        match self {
            Self::Sqlite { clock, .. } => {
                clock.fetch_add(micros, Ordering::Relaxed);
            }
            Self::Postgres { .. } => {
                for column in TIMES {
                    self.execute(&format!("UPDATE {column} - {micros}")).await;
                }
            }
        }
    }

    /// A user of this number: workers need one.
    pub(crate) async fn user(&self, number: u128) -> Uuid {
        let id = Uuid::from_u128(number);
        let sql = "INSERT INTO jobs_user (id, email, created_at) VALUES (?1, ?2, 0)";
        let email = format!("{number}@example.com");
        match self {
            Self::Sqlite { sqlite, .. } => {
                let step = move |connection: &rusqlite::Connection| {
                    let added = connection.execute(sql, rusqlite::params![id, email]);
                    added.map_err(wakeline_store::Error::from)
                };
                sqlite.write("test", step).await.unwrap();
            }
            Self::Postgres { postgres, .. } => {
                let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                    [(&id, Type::UUID), (&email, Type::TEXT)];
                let added = postgres.query("test", &qualified(sql), &parameters).await;
                added.unwrap();
            }
        }
        id
    }

    /// A change past the store. Tables are named as on SQLite.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                let step = move |connection: &rusqlite::Connection| {
                    let done = connection.execute_batch(&sql);
                    done.map_err(wakeline_store::Error::from)
                };
                sqlite.write("test", step).await.unwrap();
            }
            Self::Postgres { postgres, .. } => {
                postgres.query("test", &qualified(sql), &[]).await.unwrap();
            }
        }
    }

    /// `SELECT count(*) FROM …`
    pub(crate) async fn count(&self, those: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {those}");
        match self {
            Self::Sqlite { sqlite, .. } => {
                let question = move |connection: &rusqlite::Connection| {
                    let counted = connection.query_row(&sql, [], |row| row.get(0));
                    counted.map_err(wakeline_store::Error::from)
                };
                sqlite.read("test", question).await.unwrap()
            }
            Self::Postgres { postgres, .. } => {
                let rows = postgres.query("test", &qualified(&sql), &[]).await;
                rows.unwrap()[0].get(0)
            }
        }
    }

    /// A session of the test's own, where there are sessions beside each other.
    pub(crate) async fn session(&self) -> Option<Client> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { postgres, .. } => Some(postgres.connector().connect().await.unwrap()),
        }
    }

    /// How many sessions wait for a lock.
    pub(crate) async fn stuck(&self) -> i64 {
        self.count(
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .await
    }
}

fn qualified(sql: &str) -> String {
    let words = ["INTO ", "UPDATE ", "FROM ", "JOIN "];
    words.iter().fold(sql.replace('?', "$"), |sql, word| {
        sql.replace(&format!("{word}jobs_"), &format!("{word}wakeline.jobs_"))
    })
}
