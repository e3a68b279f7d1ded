//! The steps on SQLite: the single writer makes each of them a plain sequence of statements.

mod ack;
mod pop;
mod push;
mod recheck;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::{FutureExt, future::BoxFuture};
use uuid::Uuid;
use wakeline_bus::Due;
use wakeline_store::{Error, Migrations, Sqlite};
use wakeline_wake::Waiting;

use super::{Store, Stored};
use crate::{
    ack::{Ack, Acked},
    claim::{Claimed, PopRequest, Popped},
    message::NewMessage,
    topic,
};

pub const MIGRATIONS: Migrations = Migrations {
    door: topic::DOOR,
    steps: &[include_str!("sqlite/001_queue.sql")],
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
        micros(since)
    })
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
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
}

impl Store for SqliteStore {
    fn push(&self, messages: Arc<[NewMessage]>) -> BoxFuture<'_, Result<Stored, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .write("push", move |connection| {
                Ok(push::push(connection, &messages, clock())?)
            })
            .boxed()
    }

    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>> {
        async move {
            // Most checks of a held request find nothing: they must not stand in the writer's line.
            let (asked, clock) = (request.clone(), self.clock.clone());
            let seen = self
                .sqlite
                .read("pop", move |connection| {
                    Ok::<_, Error>(pop::look(connection, &asked, clock())?)
                })
                .await?;
            if let pop::Seen::Nothing { again } = seen {
                return Ok(Popped::Empty { again });
            }
            let clock = self.clock.clone();
            self.sqlite
                .write("pop", move |connection| {
                    Ok(pop::claim(connection, &request, lease, time, clock())?)
                })
                .await
        }
        .boxed()
    }

    fn ack(&self, ack: Arc<Ack>) -> BoxFuture<'_, Result<Acked, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .write("ack", move |connection| {
                Ok(ack::ack(connection, &ack, clock())?)
            })
            .boxed()
    }

    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<bool, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .write("hand_back", move |connection| {
                Ok(pop::hand_back(connection, &claim, clock())?)
            })
            .boxed()
    }

    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>> {
        let clock = self.clock.clone();
        self.sqlite
            .read("recheck", move |connection| {
                Ok(recheck::recheck(connection, &waiting, clock())?)
            })
            .boxed()
    }
}
