//! The steps on SQLite: the single writer makes each of them a plain sequence of statements. What
//! decides is the book and the cut, which PostgreSQL shares.

mod claims;
mod curate;
mod groups;
mod look;
mod manage;
mod read;
mod record;
mod steps;
mod streams;
mod sweep;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::{FutureExt, future::BoxFuture};
use rusqlite::Connection;
use uuid::Uuid;
use wakeline_bus::Due;
use wakeline_store::{Error, Migrations, Sqlite};
use wakeline_wake::Waiting;

use super::{Manage, Store, Streams};
use crate::{
    claim::{Claimed, PopRequest, Popped},
    claiming::in_micros,
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Sought, Swept},
    step::{Done, Step},
    stream::{Registered, Registration, StateQuery, StateRow},
    topic,
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("sqlite/001_tables.sql"),
        include_str!("sqlite/002_browse.sql"),
    ],
};

/// Microseconds since 1970.
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The process' own clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        in_micros(since)
    })
}

pub struct SqliteStore {
    sqlite: Sqlite,
    clock: Clock,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SqliteStore")
            .field("sqlite", &self.sqlite)
            .finish_non_exhaustive()
    }
}

impl SqliteStore {
    #[must_use]
    pub fn new(sqlite: Sqlite, clock: Clock) -> Self {
        Self { sqlite, clock }
    }

    /// A step of the writer, at the time of its turn.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .write(kind, move |connection| Ok(step(connection, clock())?))
            .boxed()
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        question: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .read(kind, move |connection| Ok(question(connection, clock())?))
            .boxed()
    }
}

impl Store for SqliteStore {
    fn step(&self, step: Arc<Step>) -> BoxFuture<'_, Result<Done, Error>> {
        self.write("step", move |connection, now| {
            steps::step(connection, &step, now)
        })
    }

    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>> {
        async move {
            // Most checks of a held request find nothing: they must not stand in the writer's line.
            let asked = request.clone();
            let seen = self
                .read("pop", move |connection, now| {
                    look::look(connection, &asked, now)
                })
                .await?;
            if let look::Seen::Nothing { again } = seen {
                return Ok(Popped::Empty { again });
            }
            self.write("pop", move |connection, now| {
                claims::claim(connection, &request, lease, time, now)
            })
            .await
        }
        .boxed()
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<Vec<i64>, Error>> {
        self.write("hand_back", move |connection, now| {
            claims::hand_back(connection, &claim, now)
        })
    }

    fn extend(
        &self,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Option<(usize, i64)>, Error>> {
        self.write("extend", move |connection, now| {
            claims::extend(connection, lease, time, now)
        })
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        self.read("recheck", move |connection, now| {
            look::recheck(connection, &waiting, now)
        })
    }
}

impl Manage for SqliteStore {
    fn configure(&self, options: NewOptions) -> BoxFuture<'_, Result<Configured, Error>> {
        self.write("configure", move |connection, now| {
            manage::configure(connection, &options, now)
        })
    }

    fn delete_queue(&self, queue: String) -> BoxFuture<'_, Result<Option<i64>, Error>> {
        self.write("delete_queue", move |connection, _| {
            manage::delete_queue(connection, &queue)
        })
    }

    fn delete_group(
        &self,
        scope: GroupScope,
        with_start: bool,
    ) -> BoxFuture<'_, Result<u64, Error>> {
        self.write("delete_group", move |connection, _| {
            groups::delete(connection, &scope, with_start)
        })
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> BoxFuture<'_, Result<Sought, Error>> {
        self.write("seek", move |connection, now| {
            groups::seek(connection, &scope, to, now)
        })
    }

    fn subscribe(&self, group: String, begin_us: i64) -> BoxFuture<'_, Result<u64, Error>> {
        self.write("subscribe", move |connection, _| {
            groups::subscribe(connection, &group, begin_us)
        })
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        self.read("modes", |connection, _| manage::modes(connection))
    }

    fn set_push_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        self.write("modes", move |connection, _| {
            connection.execute("UPDATE queue_mode SET push_paused = ?1", [paused])?;
            manage::modes(connection)
        })
    }

    fn set_pop_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>> {
        self.write("modes", move |connection, _| {
            connection.execute("UPDATE queue_mode SET pop_paused = ?1", [paused])?;
            manage::modes(connection)
        })
    }

    fn sweep(&self, limit: u32) -> BoxFuture<'_, Result<Swept, Error>> {
        self.write("sweep", move |connection, now| {
            sweep::sweep(connection, limit, now)
        })
    }
}

impl Streams for SqliteStore {
    fn register(&self, query: Registration) -> BoxFuture<'_, Result<Registered, Error>> {
        self.write("stream", move |connection, now| {
            streams::register(connection, &query, now)
        })
    }

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>> {
        self.read("states", move |connection, _| {
            streams::states(connection, &query)
        })
    }
}

/// What cannot be read was not written by this program.
fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}
