//! The store on SQLite. There is one writer, so a write is a plain sequence of statements. The rules
//! are in [`apply`](crate::apply) and [`takeable`](crate::takeable), which PostgreSQL shares.

mod apply;
mod claims;
mod message_admin;
mod queue_admin;
mod read;
mod ready_check;
mod stats;
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

use super::{Store, wakes};
use crate::{
    claim::{Claim, PopOutcome, PopRequest},
    claiming::duration_to_us,
    topic,
    write_batch::{BatchOutcome, WriteBatch},
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[
        include_str!("sqlite/001_tables.sql"),
        include_str!("sqlite/002_views.sql"),
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
        duration_to_us(since)
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

    /// A write in the writer's transaction, at the time of its turn, and the waiters that it wakes.
    fn write<T: Send + 'static>(
        &self,
        kind: &'static str,
        write: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
        wakes: impl FnOnce(&T) -> Wakes + Send + 'static,
    ) -> Write<T> {
        let store = self.clone();
        let run = async move { store.submit(kind, write).await };
        Write::new(topic::DOOR, run, wakes)
    }

    async fn submit<T: Send + 'static>(
        &self,
        kind: &'static str,
        write: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let clock = self.clock.clone();
        self.sqlite
            .write(kind, move |connection| Ok(write(connection, clock())?))
            .await
    }

    fn read<T: Send + 'static>(
        &self,
        kind: &'static str,
        read: impl FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .read(kind, move |connection| Ok(read(connection, clock())?))
            .boxed()
    }
}

impl Store for SqliteStore {
    fn apply(&self, batch: Arc<WriteBatch>) -> Write<BatchOutcome> {
        self.write(
            "write",
            move |connection, now| apply::apply(connection, &batch, now),
            wakes::of_write_batch,
        )
    }

    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<PopOutcome> {
        let store = self.clone();
        let run = async move {
            // Most checks of held pops find nothing: they must not wait for the writer.
            let checked = request.clone();
            let check = store
                .read("pop", move |connection, now| {
                    ready_check::check(connection, &checked, now)
                })
                .await?;
            if let ready_check::ReadyCheck::Nothing { recheck_after } = check {
                return Ok(PopOutcome::Empty { recheck_after });
            }
            store
                .submit("pop", move |connection, now| {
                    claims::claim(connection, &request, lease, time, now)
                })
                .await
        };
        Write::new(topic::DOOR, run, wakes::of_pop)
    }

    fn release_claim(&self, claim: Arc<Claim>) -> Write<Vec<i64>> {
        let released_from = claim.clone();
        self.write(
            "release_claim",
            move |connection, now| claims::release_claim(connection, &claim, now),
            move |released| wakes::of_release(&released_from, released),
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
            ready_check::recheck(connection, &waiting, now)
        })
    }
}

/// A segment that is not JSON was not written by this program.
fn unreadable(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(error))
}
