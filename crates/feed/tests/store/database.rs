//! A database of the test's own, and what a test does to it past the store.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use wakeline_bus::Bus;
use wakeline_feed::store::{
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};
use wakeline_wake::{Engine, Limits};

/// Where SQLite's clock begins: anything but zero.
const BEGINNING: i64 = 1_700_000_000_000_000;

/// Queries have a suite of their own.
pub(crate) use wakeline_feed::store::Store as Steps;

pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        file: SqliteDatabase,
        /// Microseconds since 1970.
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
    pub(crate) async fn store(&self) -> Arc<dyn Steps> {
        match self {
            Self::Sqlite { file, clock, .. } => {
                let clock = clock.clone();
                let clock = move || clock.load(Ordering::Relaxed);
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, Arc::new(clock)))
            }
            Self::Postgres { database, .. } => {
                let postgres = database.open(&[postgres::MIGRATIONS]).await;
                Arc::new(PostgresStore::new(postgres))
            }
        }
    }

    /// Lets time pass for definitions without waiting for it. PostgreSQL's clock cannot be set, so
    /// what there is becomes older instead.
    pub(crate) async fn pass(&self, micros: i64) {
        match self {
            Self::Sqlite { clock, .. } => {
                clock.fetch_add(micros, Ordering::Relaxed);
            }
            Self::Postgres { .. } => {
                let sql = format!("UPDATE feed_definition SET used = used - {micros}");
                self.execute(&sql).await;
            }
        }
    }

    /// The time by the database's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self {
            Self::Sqlite { clock, .. } => clock.load(Ordering::Relaxed),
            Self::Postgres { .. } => self.number("SELECT wakeline.feed_now()").await,
        }
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

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                let question = move |connection: &rusqlite::Connection| {
                    let number = connection.query_row(&sql, [], |row| row.get(0));
                    number.map_err(wakeline_store::Error::from)
                };
                sqlite.read("test", question).await.unwrap()
            }
            Self::Postgres { postgres, .. } => {
                let rows = postgres.query("test", &qualified(sql), &[]).await;
                rows.unwrap()[0].get(0)
            }
        }
    }

    /// `SELECT count(*) FROM …`
    pub(crate) async fn count(&self, those: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {those}")).await
    }

    /// Only on PostgreSQL.
    pub(crate) async fn session(&self) -> tokio_postgres::Client {
        match self {
            Self::Sqlite { .. } => panic!("SQLite has no sessions"),
            Self::Postgres { postgres, .. } => postgres.connector().connect().await.unwrap(),
        }
    }
}

fn qualified(sql: &str) -> String {
    ["INTO ", "UPDATE ", "FROM "]
        .iter()
        .fold(sql.to_owned(), |sql, word| {
            sql.replace(&format!("{word}feed_"), &format!("{word}wakeline.feed_"))
        })
}

/// A bus that nobody else is on: for writes whose wakes no test waits for.
pub(crate) fn bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}
