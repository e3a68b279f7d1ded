//! A database of the test's own, of either kind, and what a test does to it past the store.

use tokio_postgres::Client;
use uuid::Uuid;
use wakeline_store::{Error, Migrations, Postgres, Sqlite, postgres::Connector};

use crate::{
    fresh::{PostgresDatabase, SqliteDatabase},
    wait::eventually,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    Sqlite,
    Postgres,
}

/// A fresh database with a door's tables. SQL is written for both kinds: without a schema.
#[derive(Debug)]
pub struct TestDatabase {
    inner: Inner,
    migrations: Migrations,
}

#[derive(Debug)]
enum Inner {
    Sqlite {
        sqlite: Sqlite,
        file: SqliteDatabase,
    },
    Postgres {
        /// Finds the tables without their schema's name.
        client: Client,
        database: PostgresDatabase,
    },
}

/// What a door makes its store of.
#[derive(Clone, Debug)]
pub enum OpenStore {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

impl TestDatabase {
    /// With the door's migrations for SQLite and for PostgreSQL.
    pub async fn new(kind: DatabaseKind, sqlite: Migrations, postgres: Migrations) -> Self {
        match kind {
            DatabaseKind::Sqlite => {
                let file = SqliteDatabase::new();
                Self {
                    inner: Inner::Sqlite {
                        sqlite: file.open(&[sqlite]),
                        file,
                    },
                    migrations: sqlite,
                }
            }
            DatabaseKind::Postgres => {
                Self::of(PostgresDatabase::new(&[postgres]).await, postgres).await
            }
        }
    }

    /// On a PostgreSQL server of the test's own.
    pub async fn on_server(server: &str, postgres: Migrations) -> Self {
        Self::of(PostgresDatabase::on(server, &[postgres]).await, postgres).await
    }

    async fn of(database: PostgresDatabase, migrations: Migrations) -> Self {
        let client = connect(&database.connector()).await;
        let inner = Inner::Postgres { client, database };
        Self { inner, migrations }
    }

    /// With connections of its own: another node's.
    pub async fn open(&self) -> OpenStore {
        match &self.inner {
            Inner::Sqlite { file, .. } => OpenStore::Sqlite(file.open(&[self.migrations])),
            Inner::Postgres { database, .. } => {
                OpenStore::Postgres(database.open(&[self.migrations]).await)
            }
        }
    }

    /// Only PostgreSQL has several nodes and sessions beside one another.
    #[must_use]
    pub fn connector(&self) -> Option<Connector> {
        match &self.inner {
            Inner::Sqlite { .. } => None,
            Inner::Postgres { database, .. } => Some(database.connector()),
        }
    }

    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(self.inner, Inner::Postgres { .. })
    }

    /// A session of the test's own on PostgreSQL.
    pub async fn session(&self) -> Client {
        let connector = self.connector().expect("SQLite has no sessions");
        connector.connect().await.expect("the server answers")
    }

    /// A change past the store.
    pub async fn execute(&self, sql: &str) {
        match &self.inner {
            Inner::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                let done = sqlite.write("test", move |connection| {
                    Ok::<_, Error>(connection.execute_batch(&sql)?)
                });
                done.await.expect("the statement is run");
            }
            Inner::Postgres { client, .. } => {
                let done = client.batch_execute(sql).await;
                done.expect("the statement is run");
            }
        }
    }

    /// The one number that a query answers.
    pub async fn number(&self, sql: &str) -> i64 {
        let number = self.optional_number(sql).await;
        number.expect("the query has an answer")
    }

    pub async fn optional_number(&self, sql: &str) -> Option<i64> {
        match &self.inner {
            Inner::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                let number = sqlite.read("test", move |connection| {
                    Ok::<_, Error>(connection.query_row(&sql, [], |row| row.get(0))?)
                });
                number.await.expect("the query is run")
            }
            Inner::Postgres { client, .. } => {
                let rows = client.query_typed(sql, &[]).await;
                rows.expect("the query is run")[0].get(0)
            }
        }
    }

    /// `SELECT count(*) FROM …`
    pub async fn count(&self, those: &str) -> i64 {
        self.number(&format!("SELECT count(*) FROM {those}")).await
    }

    /// Two numbers per row, in order.
    pub async fn pairs(&self, sql: &str) -> Vec<(i64, i64)> {
        match &self.inner {
            Inner::Sqlite { sqlite, .. } => {
                let sql = sql.to_owned();
                let pairs = sqlite.read("test", move |connection| {
                    let mut statement = connection.prepare(&sql)?;
                    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    Ok::<_, Error>(rows.collect::<Result<_, _>>()?)
                });
                pairs.await.expect("the query is run")
            }
            Inner::Postgres { client, .. } => {
                let rows = client.query_typed(sql, &[]).await;
                let rows = rows.expect("the query is run");
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        }
    }

    /// An id as a literal in SQL.
    #[must_use]
    pub fn uuid(&self, id: Uuid) -> String {
        match &self.inner {
            Inner::Sqlite { .. } => format!("x'{}'", id.simple()),
            Inner::Postgres { .. } => format!("'{id}'::uuid"),
        }
    }

    /// No write to these tables (on SQLite: no write) commits until what is returned is dropped.
    pub async fn block_writes(&self, tables: &str) -> WriteBlock {
        match &self.inner {
            Inner::Sqlite { file, .. } => {
                let connection = rusqlite::Connection::open(file.path()).expect("the file opens");
                let begun = connection.execute_batch("BEGIN IMMEDIATE");
                begun.expect("the writer's lock is free");
                WriteBlock::Sqlite(connection)
            }
            Inner::Postgres { database, .. } => {
                let client = connect(&database.connector()).await;
                let lock = format!("BEGIN; LOCK TABLE {tables} IN EXCLUSIVE MODE");
                let locked = client.batch_execute(&lock).await;
                locked.expect("the tables can be locked");
                WriteBlock::Postgres(client)
            }
        }
    }

    /// How many sessions of PostgreSQL stand before a lock.
    pub async fn blocked_sessions(&self) -> i64 {
        self.count(
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        .await
    }

    /// Whether a write has come to a lock. SQLite does not say.
    pub async fn is_write_blocked(&self) -> bool {
        !self.is_postgres() || self.blocked_sessions().await > 0
    }

    /// When all stores on PostgreSQL are dropped, waits for the end of their sessions: only then
    /// does a session report what it has read and seen.
    pub async fn all_sessions_ended(&self) {
        let others = "pg_stat_activity WHERE datname = current_database()
            AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        eventually("the sessions of the stores to end", async || {
            self.count(others).await == 0
        })
        .await;
    }
}

/// Another process that has not committed yet.
#[derive(Debug)]
pub enum WriteBlock {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

impl WriteBlock {
    /// Returns when the lock is free.
    pub async fn release(self) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("ROLLBACK").expect("a rollback"),
            Self::Postgres(client) => client.batch_execute("ROLLBACK").await.expect("a rollback"),
        }
    }
}

/// Statements need no schema there.
async fn connect(connector: &Connector) -> Client {
    let client = connector.connect().await.expect("the server answers");
    let named = client.batch_execute("SET search_path = wakeline").await;
    named.expect("a session's setting");
    client
}
