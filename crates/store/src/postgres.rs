//! PostgreSQL: a few connections that reconnect by themselves, and batches that share a commit.
//!
//! Statements go out with their types and without a name (`query_typed`): one round trip, nothing
//! prepared on the server, so that a pooler in transaction mode and a reconnect both just work.
//! Statements that are expensive to plan are in the doors' functions, which the server caches per
//! session.

mod advice;
mod batch;
mod connect;
mod migrator;
mod pipeline;
mod session;

use std::{
    iter,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::{sleep, timeout};
use tokio_postgres::{Row, types::ToSql, types::Type};

pub use batch::{Batch, Batcher, RunError, Weigh};
pub use connect::{Connector, ListenConnection, MAX_NOTIFICATIONS};
pub use migrator::{Policy, quoted};
pub use pipeline::send;
pub use session::Session;
pub use tokio_postgres::Error as DriverError;

pub use crate::pipelined;

use crate::{
    error::Error,
    load::{Load, Meter},
    metrics,
    migrate::{Migrations, OpenError},
};
use migrator::Migrator;

pub(crate) const STORE: &str = "postgres";

/// The best number of batches of one kind at once: while one waits for the disk, the next one works;
/// more would only make the batches smaller.
pub const WORKERS: usize = 2;

/// Fails if the database's disk has no room for 4 MiB: it sorts more than it may hold in memory. It
/// needs no right to write, and leaves nothing behind. In one message, so that nothing else that is
/// sent on the connection comes between.
const LOOK_FOR_ROOM: &str = "
    SET LOCAL work_mem = '64kB';
    SET LOCAL temp_tablespaces = '';
    SELECT count(*) FROM (
        SELECT repeat(md5(number::text), 128) AS line FROM generate_series(1, 1024) AS number
        ORDER BY line OFFSET 0) AS sorted";

/// While the disk is full. Not at a caller's request: it is work for a disk in trouble.
const LOOK_FOR_ROOM_EVERY: Duration = Duration::from_secs(1);

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
    /// The server ends a statement by itself. A server, pooler or network that has become silent does
    /// not: then the store gives up after this time.
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
    disk_is_full: Arc<AtomicBool>,
}

impl Postgres {
    /// Connects and brings the database to the newest version of every door.
    pub async fn open(
        url: &str,
        options: &Options,
        migrations: &[Migrations],
    ) -> Result<Self, OpenError> {
        Self::open_schema(url, options, "wakeline", Policy::Apply, migrations).await
    }

    /// The same in a schema of another name, which stands for `@schema@` in the migrations.
    /// Boxed, as [`query`](Self::query) is, to be compiled here once.
    pub fn open_schema<'a>(
        url: &'a str,
        options: &'a Options,
        schema: &'a str,
        policy: Policy,
        migrations: &'a [Migrations],
    ) -> BoxFuture<'a, Result<Self, OpenError>> {
        Self::migrated(url, options, schema, policy, migrations).boxed()
    }

    async fn migrated(
        url: &str,
        options: &Options,
        schema: &str,
        policy: Policy,
        migrations: &[Migrations],
    ) -> Result<Self, OpenError> {
        let connector = Connector::new(url, options)?;
        let client = Arc::new(connector.connect_first().await?);
        Migrator::new(&client, &connector, schema, migrations)
            .run(policy)
            .await?;
        let others = (1..options.connections).map(|_| Session::new(connector.clone()));
        let sessions: Arc<[Arc<Session>]> =
            iter::once(Session::with_client(connector.clone(), client))
                .chain(others)
                .map(Arc::new)
                .collect();
        let meter = Arc::new(Meter::with(sessions.len()));
        metrics::disk_full(STORE, false);
        Ok(Self {
            sessions,
            next: Arc::default(),
            connector,
            options: options.clone(),
            meter,
            disk_is_full: Arc::default(),
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

    /// The load of the sessions and of the batches' workers.
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

    /// Whether the server answers, and has room if an operation has found none.
    pub async fn ping(&self) -> Result<(), Error> {
        self.query("ping", "SELECT 1", &[]).await?;
        if self.disk_is_full.load(Ordering::Relaxed) {
            return Err(Error::disk_full("what needs more room is refused"));
        }
        Ok(())
    }

    /// Remembers for [`ping`](Self::ping) that an operation has found no room, until there is some.
    pub(crate) fn note_room<'a>(&self, results: impl IntoIterator<Item = Option<&'a Error>>) {
        let full = |error: &&Error| error.is_disk_full();
        if let Some(error) = results.into_iter().flatten().find(full)
            && !self.disk_is_full.swap(true, Ordering::Relaxed)
        {
            tracing::error!(%error, "PostgreSQL's disk is full");
            metrics::disk_full(STORE, true);
            tokio::spawn(self.clone().until_room());
        }
    }

    async fn until_room(self) {
        loop {
            sleep(LOOK_FOR_ROOM_EVERY).await;
            match self.look_for_room().await {
                // A full disk is an outage too.
                Err(error) if error.is_outage() => {}
                // Any other error, such as a limit on such files, tells nothing about the disk.
                Ok(()) | Err(_) => break,
            }
        }
        self.disk_is_full.store(false, Ordering::Relaxed);
        metrics::disk_full(STORE, false);
        tracing::info!("PostgreSQL has room on its disk again");
    }

    /// One statement by itself: a read, or a write that is rare. It commits by itself; when the
    /// future is dropped, the statement may still run. Boxed: an `async fn` would be compiled again
    /// in every crate that awaits it, with the driver's part.
    pub fn query<'a>(
        &'a self,
        kind: &'static str,
        statement: &'a str,
        parameters: &'a [(&'a (dyn ToSql + Sync), Type)],
    ) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
        async move {
            let _at_work = self.meter.at_work();
            let rows = self.run(kind, statement, parameters).await;
            self.note_room([rows.as_ref().err()]);
            self.meter.count_failure(rows)
        }
        .boxed()
    }

    async fn run(
        &self,
        kind: &'static str,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Error> {
        let session = self.session();
        let client = session.client().await?;
        metrics::statements(STORE, kind, 1);
        let answer = client.query_typed(statement, parameters);
        match timeout(self.options.patience(), answer).await {
            Ok(answer) => answer.map_err(|error| explain(&error)),
            Err(_) => Err(session.give_up(&client).await),
        }
    }

    async fn look_for_room(&self) -> Result<(), Error> {
        let session = self.session();
        let client = session.client().await?;
        metrics::statements(STORE, "look_for_room", 1);
        match timeout(self.options.patience(), client.batch_execute(LOOK_FOR_ROOM)).await {
            Ok(answer) => answer.map_err(|error| explain(&error)),
            Err(_) => Err(session.give_up(&client).await),
        }
    }
}

/// What an error of the driver means for the caller.
#[must_use]
pub fn explain(error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(error) => {
            let code = error.code().code();
            let text = format!("{code}: {}", error.message());
            if code == DISK_FULL {
                Error::disk_full(text)
            } else if is_broken_connection(code) {
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

/// A table or an index cannot grow; the transaction is rolled back.
const DISK_FULL: &str = "53100";

/// A pooler's error when it has lost the server during a statement.
fn is_broken_connection(code: &str) -> bool {
    code.starts_with("08")
}

/// Rolled back for a reason outside of the operations: the server stops or starts, is read-only, has
/// no room or time, or could not get a lock.
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
