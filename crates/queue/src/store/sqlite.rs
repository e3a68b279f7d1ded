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
use wakeline_bus::{DueWake, Wakes, Write};
use wakeline_store::{Error, Migrations, Sqlite};
use wakeline_wake::WaitedKey;

use super::{Manage, Store, Streams, wakes};
use crate::{
    claim::{Claimed, PopRequest, Popped},
    claiming::in_micros,
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Swept},
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

#[derive(Clone)]
pub struct SqliteStore {
    sqlite: Arc<Sqlite>,
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
        Self {
            sqlite: Arc::new(sqlite),
            clock,
        }
    }

    /// A step of the writer, at the time of its turn, and whom it makes ready.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
    ) -> Write<T> {
        let store = self.clone();
        let run = async move { store.submit(kind, step).await };
        Write::new(topic::DOOR, run, wakes)
    }

    async fn submit<T: Send + 'static>(
        &self,
        kind: &'static str,
        step: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let clock = self.clock.clone();
        self.sqlite
            .write(kind, move |connection| Ok(step(connection, clock())?))
            .await
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
    fn step(&self, step: Arc<Step>) -> Write<Done> {
        self.write(
            "step",
            move |connection, now| steps::step(connection, &step, now),
            wakes::of_step,
        )
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<Popped> {
        let store = self.clone();
        let run = async move {
            // Most checks of a held request find nothing: they must not stand in the writer's line.
            let asked = request.clone();
            let seen = store
                .read("pop", move |connection, now| {
                    look::look(connection, &asked, now)
                })
                .await?;
            if let look::Seen::Nothing { recheck_after } = seen {
                return Ok(Popped::Empty { recheck_after });
            }
            store
                .submit("pop", move |connection, now| {
                    claims::claim(connection, &request, lease, time, now)
                })
                .await
        };
        Write::new(topic::DOOR, run, wakes::of_pop)
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> Write<Vec<i64>> {
        let claimed = claim.clone();
        self.write(
            "hand_back",
            move |connection, now| claims::hand_back(connection, &claim, now),
            move |returned| wakes::of_hand_back(&claimed, returned),
        )
    }

    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>> {
        self.write(
            "extend",
            move |connection, now| claims::extend(connection, lease, time, now),
            wakes::none,
        )
    }

    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>> {
        self.read("recheck", move |connection, now| {
            look::recheck(connection, &waiting, now)
        })
    }
}

impl Manage for SqliteStore {
    fn configure(&self, options: NewOptions) -> Write<Configured> {
        self.write(
            "configure",
            move |connection, now| manage::configure(connection, &options, now),
            wakes::of_configure,
        )
    }

    fn delete_queue(&self, queue: String) -> Write<Option<i64>> {
        self.write(
            "delete_queue",
            move |connection, _| manage::delete_queue(connection, &queue),
            wakes::none,
        )
    }

    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64> {
        self.write(
            "delete_group",
            move |connection, _| groups::delete(connection, &scope, with_start),
            wakes::whole_door,
        )
    }

    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64> {
        self.write(
            "seek",
            move |connection, now| groups::seek(connection, &scope, to, now),
            wakes::whole_door,
        )
    }

    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64> {
        self.write(
            "subscribe",
            move |connection, _| groups::subscribe(connection, &group, begin_us),
            wakes::none,
        )
    }

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>> {
        self.read("modes", |connection, _| manage::modes(connection))
    }

    fn set_push_paused(&self, paused: bool) -> Write<Modes> {
        self.write(
            "modes",
            move |connection, _| {
                connection.execute("UPDATE queue_mode SET push_paused = ?1", [paused])?;
                manage::modes(connection)
            },
            wakes::none,
        )
    }

    fn set_pop_paused(&self, paused: bool) -> Write<Modes> {
        self.write(
            "modes",
            move |connection, _| {
                connection.execute("UPDATE queue_mode SET pop_paused = ?1", [paused])?;
                manage::modes(connection)
            },
            wakes::of_pop_pause,
        )
    }

    fn sweep(&self, limit: u32) -> Write<Swept> {
        self.write(
            "sweep",
            move |connection, now| sweep::sweep(connection, limit, now),
            wakes::none,
        )
    }
}

impl Streams for SqliteStore {
    fn register(&self, query: Registration) -> Write<Registered> {
        self.write(
            "stream",
            move |connection, now| streams::register(connection, &query, now),
            wakes::none,
        )
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
