//! A database of the test's own, and what a test does to it past the store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tokio_postgres::Client;
use wakeline_queue::store::{
    Store,
    postgres::{self, PostgresStore},
    sqlite::{self, SqliteStore, system_clock},
};
use wakeline_store::{
    Postgres, Sqlite,
    testing::{PostgresDatabase, SqliteDatabase},
};

/// Where a stopped clock begins: anything but zero.
const STOPPED_AT: i64 = 1_700_000_000_000_000;

/// How long the sessions of a dropped store may take to end.
const GOING: Duration = Duration::from_secs(20);

pub(crate) enum Database {
    Sqlite {
        sqlite: Sqlite,
        file: SqliteDatabase,
        /// Microseconds since 1970; zero while the clock runs.
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
            clock: Arc::new(AtomicI64::new(STOPPED_AT)),
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
                let (clock, running) = (clock.clone(), system_clock());
                let clock = move || match clock.load(Ordering::Relaxed) {
                    0 => running(),
                    stopped => stopped,
                };
                let sqlite = file.open(&[sqlite::MIGRATIONS]);
                Arc::new(SqliteStore::new(sqlite, Arc::new(clock)))
            }
            Self::Postgres { database, .. } => Arc::new(PostgresStore::new(
                database.open(&[postgres::MIGRATIONS]).await,
            )),
        }
    }

    /// PostgreSQL itself; the bus of two nodes needs it.
    pub(crate) fn as_postgres(&self) -> Option<&Postgres> {
        match self {
            Self::Sqlite { .. } => None,
            Self::Postgres { postgres, .. } => Some(postgres),
        }
    }

    /// From here on SQLite's clock is the real one, as PostgreSQL's always is.
    pub(crate) fn let_the_clock_run(&self) {
        if let Self::Sqlite { clock, .. } = self {
            clock.store(0, Ordering::Relaxed);
        }
    }

    /// Lets `time` pass for cursors without waiting for it. PostgreSQL's clock cannot be set, so
    /// what is due comes nearer instead.
    pub(crate) async fn pass(&self, time: Duration) {
        match self {
            Self::Sqlite { clock, .. } => {
                let micros = i64::try_from(time.as_micros()).unwrap();
                clock.fetch_add(micros, Ordering::Relaxed);
            }
            Self::Postgres { .. } => {
                self.shift(time, &["queue_cursor SET ready_at = ready_at"])
                    .await;
            }
        }
    }

    /// The same for messages too. On PostgreSQL they are then of an earlier time, and their ids,
    /// which say that time, are others.
    pub(crate) async fn pass_for_all(&self, time: Duration) {
        self.pass(time).await;
        if self.as_postgres().is_some() {
            let times = [
                "queue_segment SET created_at = created_at",
                "queue_partition SET last_at = last_at",
                "queue_group SET begin_at = begin_at",
                "queue_subscription SET begin_at = begin_at",
            ];
            self.shift(time, &times).await;
        }
    }

    async fn shift(&self, time: Duration, columns: &[&str]) {
        let micros = time.as_micros();
        for column in columns {
            self.execute(&format!(
                "UPDATE {column} - {micros} * interval '1 microsecond'"
            ))
            .await;
        }
    }

    /// Microseconds since 1970, by the store's clock.
    pub(crate) async fn now(&self) -> i64 {
        match self {
            Self::Sqlite { clock, .. } => match clock.load(Ordering::Relaxed) {
                0 => system_clock()(),
                stopped => stopped,
            },
            Self::Postgres { .. } => {
                let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint), \
                           CAST(0 AS bigint)";
                self.pairs(sql).await[0].0
            }
        }
    }

    pub(crate) async fn set_lease(&self, queue: &str, time: Duration) {
        let milliseconds = time.as_millis();
        self.execute(&format!(
            "UPDATE queue SET lease_ms = {milliseconds} WHERE name = '{queue}'"
        ))
        .await;
    }

    /// A change past the store. Tables are named as on SQLite.
    pub(crate) async fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                sqlite
                    .write("test", move |connection| {
                        connection
                            .execute_batch(&sql)
                            .map_err(wakeline_store::Error::from)
                    })
                    .await
                    .unwrap();
            }
            Self::Postgres { postgres, .. } => {
                postgres.query("test", &qualified(sql), &[]).await.unwrap();
            }
        }
    }

    /// Two numbers per row, in order.
    pub(crate) async fn pairs(&self, sql: &str) -> Vec<(i64, i64)> {
        match self {
            Self::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                sqlite
                    .read("test", move |connection| {
                        let mut statement = connection.prepare(&sql)?;
                        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                        rows.collect::<Result<_, _>>()
                            .map_err(wakeline_store::Error::from)
                    })
                    .await
                    .unwrap()
            }
            Self::Postgres { postgres, .. } => {
                let rows = postgres.query("test", &qualified(sql), &[]).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        }
    }

    /// No write commits until what is returned is released.
    pub(crate) async fn block_writes(&self) -> Blocker {
        match self {
            Self::Sqlite { file, .. } => {
                let connection = rusqlite::Connection::open(file.path()).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                Blocker::Sqlite(connection)
            }
            Self::Postgres { postgres, .. } => {
                let client = postgres.connector().connect().await.unwrap();
                let lock = "BEGIN; LOCK TABLE wakeline.queue, wakeline.queue_group,
                     wakeline.queue_partition, wakeline.queue_cursor, wakeline.queue_mode
                     IN EXCLUSIVE MODE";
                client.batch_execute(lock).await.unwrap();
                Blocker::Postgres(client)
            }
        }
    }

    /// Whether a write has come to a lock. SQLite's writer has by being asked to write.
    pub(crate) async fn is_write_waiting(&self) -> bool {
        let Some(postgres) = self.as_postgres() else {
            return true;
        };
        let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
             WHERE NOT l.granted AND d.datname = current_database()";
        let rows = postgres.query("test", waiting, &[]).await.unwrap();
        rows[0].get::<_, i64>(0) > 0
    }

    /// On PostgreSQL no pop gets on until what is returned is dropped, so that those that follow
    /// gather and run as batches, two nodes' at once.
    pub(crate) async fn hold_pops_up(&self) -> Option<Client> {
        let connector = self.as_postgres()?.connector();
        let client = connector.connect().await.unwrap();
        let lock = "BEGIN; LOCK TABLE wakeline.queue_group IN ACCESS EXCLUSIVE MODE";
        client.batch_execute(lock).await.unwrap();
        Some(client)
    }

    /// To be asked when the stores are gone: a session tells what it saw when it ends.
    pub(crate) async fn saw_no_deadlock(&self) {
        let Self::Postgres { postgres, .. } = self else {
            return;
        };
        let sessions = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid()
                 AND backend_type = 'client backend'";
        let ask =
            async |sql: &str| -> i64 { postgres.query("test", sql, &[]).await.unwrap()[0].get(0) };
        let began = std::time::Instant::now();
        // Some sessions are this database's own.
        while ask(sessions).await >= i64::try_from(postgres.options().connections).unwrap() {
            assert!(began.elapsed() < GOING, "the sessions of a store stay");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        assert_eq!(ask(deadlocks).await, 0, "deadlocks");
    }

    /// How many messages there are in all segments.
    pub(crate) async fn messages(&self) -> i64 {
        let sql = "SELECT CAST(coalesce(sum(last - first + 1), 0) AS bigint), CAST(0 AS bigint) \
                   FROM queue_segment";
        self.pairs(sql).await[0].0
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*), CAST(0 AS bigint) FROM {table}");
        self.pairs(&sql).await[0].0
    }
}

/// Another process that has not committed yet.
pub(crate) enum Blocker {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

impl Blocker {
    pub(crate) async fn release(self) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("ROLLBACK").unwrap(),
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.unwrap(),
        }
    }
}

fn qualified(sql: &str) -> String {
    ["UPDATE ", "FROM ", "JOIN "]
        .iter()
        .fold(sql.to_owned(), |sql, word| {
            sql.replace(&format!("{word}queue"), &format!("{word}wakeline.queue"))
        })
}
