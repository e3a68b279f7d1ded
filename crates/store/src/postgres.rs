//! PostgreSQL: a few connections that mend themselves, and batches that share a commit.
//!
//! Statements go out with their types and without a name (`query_typed`): one round trip, nothing
//! prepared on the server, so that a pooler in transaction mode and a reconnect both just work.
//! What is expensive to plan lives in the doors' functions, which the server caches per session.

mod batch;
mod connect;
mod session;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::timeout;
use tokio_postgres::{Client, Row, types::ToSql, types::Type};

pub use batch::{Batch, Batcher, RunError, Weigh};
pub use connect::{Connector, Line};
pub use session::Session;

use crate::{
    error::Error,
    load::{Load, Meter},
    migrate::{Migrations, OpenError},
    telling,
};

pub(crate) const STORE: &str = "postgres";

/// Batches of one kind that are best under way at once. Two: while one waits for the disk, the next
/// is at work; more would only make the batches smaller.
pub const WORKERS: usize = 2;

/// Taken for the length of a migration. The number means nothing; it must only be ours.
const MIGRATION_LOCK: i64 = 0x77_61_6b_65;

#[derive(Clone, Debug)]
pub struct Options {
    pub connections: usize,
    /// Operations per statement at most.
    pub max_batch: usize,
    /// Operations that may wait for a commit.
    pub max_pending: usize,
    pub connect_timeout: Duration,
    pub statement_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4,
            max_batch: 500,
            max_pending: 100_000,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// The server ends a statement by itself; a server, pooler or network that has fallen silent
    /// does not.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout + self.connect_timeout
    }
}

/// An open PostgreSQL database. A restart of the server is survived: sessions reconnect.
#[derive(Clone, Debug)]
pub struct Postgres {
    sessions: Arc<[Arc<Session>]>,
    next: Arc<AtomicUsize>,
    connector: Connector,
    options: Options,
    meter: Arc<Meter>,
}

impl Postgres {
    /// Connects and brings the database to the newest version of every door.
    pub async fn open(
        url: &str,
        options: &Options,
        migrations: &[Migrations],
    ) -> Result<Self, OpenError> {
        let connector = Connector::new(url, options)?;
        let sessions: Arc<[Arc<Session>]> = (0..options.connections.max(1))
            .map(|_| Arc::new(Session::new(connector.clone())))
            .collect();
        let client = sessions[0]
            .client()
            .await
            .map_err(|error| OpenError::Open(error.to_string()))?;
        migrate(&client, migrations).await?;
        let meter = Arc::new(Meter::with(sessions.len()));
        Ok(Self {
            sessions,
            next: Arc::default(),
            connector,
            options: options.clone(),
            meter,
        })
    }

    #[must_use]
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Of the sessions and the workers of batches.
    #[must_use]
    pub fn load(&self) -> Load {
        self.meter.load()
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// One of the sessions, in turn.
    #[must_use]
    pub fn session(&self) -> Arc<Session> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        self.sessions[turn % self.sessions.len()].clone()
    }

    /// Whether the server answers.
    pub async fn ping(&self) -> Result<(), Error> {
        self.query("ping", "SELECT 1", &[]).await.map(drop)
    }

    /// One statement by itself: a read, or a write that is rare.
    pub async fn query(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        let _at_work = self.meter.at_work();
        self.meter
            .judged(self.ask(kind, statement, parameters).await)
    }

    async fn ask(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        let session = self.session();
        let client = session.client().await?;
        telling::statements(STORE, kind, 1);
        let asked = client.query_typed(statement, parameters);
        match timeout(self.options.patience(), asked).await {
            Ok(answer) => answer.map_err(|error| explain(&error)),
            Err(_) => Err(session.give_up(&client).await),
        }
    }
}

/// What an error of the driver means for the caller.
#[must_use]
pub fn explain(error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(said) => {
            let code = said.code().code();
            let text = format!("{code}: {}", said.message());
            if is_broken_connection(code) {
                Error::OutcomeUnknown(text)
            } else if is_servers_trouble(code) {
                Error::Unavailable(text)
            } else {
                Error::Failed(text)
            }
        }
        None => Error::OutcomeUnknown(chain(error)),
    }
}

/// What a pooler says when it has lost the server in the middle of a statement.
fn is_broken_connection(code: &str) -> bool {
    code.starts_with("08")
}

/// Rolled back for a reason that lies with no operation: the server stops or starts, is read-only,
/// out of room or time, or could not get a lock.
fn is_servers_trouble(code: &str) -> bool {
    matches!(code, "25006" | "55P03")
        || ["53", "57", "58"]
            .iter()
            .any(|class| code.starts_with(class))
}

/// The error with what caused it: the driver's own text alone says only "db error".
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// All in one transaction under an advisory lock of that transaction, which also a pooler in
/// transaction mode keeps. A step may take its time: a large table is not rewritten in seconds.
async fn migrate(client: &Client, migrations: &[Migrations]) -> Result<(), OpenError> {
    let open = |error: tokio_postgres::Error| OpenError::Open(chain(&error));
    let encoding: String = client
        .query_typed("SELECT current_setting('server_encoding')", &[])
        .await
        .map_err(open)?[0]
        .get(0);
    if encoding != "UTF8" {
        return Err(OpenError::Open(format!(
            "the database's encoding is {encoding}; create it with ENCODING 'UTF8'"
        )));
    }
    if is_up_to_date(client, migrations).await? {
        return Ok(());
    }
    // Each statement must see what others committed while it waited for the lock.
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
    client.batch_execute(begin).await.map_err(open)?;
    let result = migrate_in_transaction(client, migrations).await;
    let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await.map_err(open)?;
    result
}

async fn migrate_in_transaction(
    client: &Client,
    migrations: &[Migrations],
) -> Result<(), OpenError> {
    let open = |error: tokio_postgres::Error| OpenError::Open(chain(&error));
    client
        .batch_execute(&format!(
            "SET LOCAL statement_timeout = 0;
             SET LOCAL client_min_messages = warning;
             SELECT pg_advisory_xact_lock({MIGRATION_LOCK});
             CREATE SCHEMA IF NOT EXISTS wakeline;
             CREATE TABLE IF NOT EXISTS wakeline.migration (
                 door text PRIMARY KEY, version bigint NOT NULL);"
        ))
        .await
        .map_err(open)?;
    for door in migrations {
        for (number, step) in door.missing(version(client, door).await?)? {
            client
                .batch_execute(step)
                .await
                .map_err(|error| door.failed(number, chain(&error)))?;
            client
                .query_typed(
                    "INSERT INTO wakeline.migration VALUES ($1, $2)
                     ON CONFLICT (door) DO UPDATE SET version = excluded.version",
                    &[(&door.door, Type::TEXT), (&number, Type::INT8)],
                )
                .await
                .map_err(open)?;
        }
    }
    Ok(())
}

/// Asked before the lock is taken, so that a start in the usual case changes nothing.
async fn is_up_to_date(client: &Client, migrations: &[Migrations]) -> Result<bool, OpenError> {
    let known = client
        .query_typed("SELECT to_regclass('wakeline.migration') IS NOT NULL", &[])
        .await
        .map_err(|error| OpenError::Open(chain(&error)))?[0]
        .get::<_, bool>(0);
    if !known {
        return Ok(false);
    }
    for door in migrations {
        if door.missing(version(client, door).await?)?.next().is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn version(client: &Client, door: &Migrations) -> Result<i64, OpenError> {
    let rows = client
        .query_typed(
            "SELECT coalesce(max(version), 0) FROM wakeline.migration WHERE door = $1",
            &[(&door.door, Type::TEXT)],
        )
        .await
        .map_err(|error| OpenError::Open(chain(&error)))?;
    Ok(rows[0].get(0))
}
