//! A database of the test's own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use wakeline_bus::Bus;
use wakeline_feed::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};
use wakeline_wake::{Engine, Limits};

/// How long the sessions of a dropped store may take to end.
const GOING: Duration = Duration::from_secs(20);

pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        _file: SqliteDatabase,
    },
    Postgres {
        database: PostgresDatabase,
    },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let file = SqliteDatabase::new();
        let sqlite = file.open(&[sqlite::MIGRATIONS]);
        Self::Sqlite {
            sqlite,
            _file: file,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let database = PostgresDatabase::new(&[postgres::MIGRATIONS]).await;
        Self::Postgres { database }
    }

    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite { sqlite, .. } => {
                Arc::new(SqliteStore::new(sqlite.clone(), system_clock()))
            }
            Self::Postgres { database } => Arc::new(PostgresStore::new(
                database.open(&[postgres::MIGRATIONS]).await,
            )),
        }
    }

    /// Rows and index entries that PostgreSQL reads for a question.
    pub(crate) async fn cost<T>(
        &self,
        question: impl AsyncFnOnce(Arc<dyn Store>) -> T,
    ) -> (T, u64) {
        let Self::Postgres { database } = self else {
            panic!("SQLite's steps are counted beside its statements");
        };
        let watcher = database.open(&[postgres::MIGRATIONS]).await;
        others_have_gone(&watcher).await;
        let before = rows_read(&watcher).await;
        let answer = question(self.store().await).await;
        others_have_gone(&watcher).await;
        (answer, rows_read(&watcher).await - before)
    }
}

/// A session tells what it read when it ends.
async fn others_have_gone(postgres: &Postgres) {
    let sql = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend'
             AND pid <> pg_backend_pid()";
    let own = i64::try_from(postgres.options().connections).unwrap();
    let began = Instant::now();
    // The watcher's own sessions may all be open.
    loop {
        let others: i64 = postgres.query("test", sql, &[]).await.unwrap()[0].get(0);
        let other_stores = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND backend_type = 'client backend'
                 AND query LIKE '%feed%' AND pid <> pg_backend_pid()
                 AND query NOT LIKE '%pg_stat%'";
        let stores: i64 = postgres.query("test", other_stores, &[]).await.unwrap()[0].get(0);
        if others < own && stores == 0 {
            return;
        }
        assert!(began.elapsed() < GOING, "the sessions of a store stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn rows_read(postgres: &Postgres) -> u64 {
    let sql = "SELECT CAST(
             coalesce((SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('feed_fact', 'feed_edge')), 0)
             + coalesce((SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('feed_fact', 'feed_edge')), 0)
         AS bigint)";
    let read: i64 = postgres.query("test", sql, &[]).await.unwrap()[0].get(0);
    u64::try_from(read).unwrap()
}

/// A bus that nobody else is on: for writes whose wakes no test waits for.
pub(crate) fn bus() -> Arc<Bus> {
    Bus::local(Engine::new(Limits::default()))
}
