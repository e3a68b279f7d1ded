//! The durable steps. Two implementations: [`sqlite`] and [`postgres`].

pub mod browse;
pub mod postgres;
pub mod read;
pub mod sqlite;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::Due;
use wakeline_store::{Error, Load};
use wakeline_wake::Waiting;

use self::{browse::Curate, read::Read};
use crate::{
    claim::{Claimed, PopRequest, Popped},
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Sought, Swept},
    step::{Done, Step},
    stream::{Registered, Registration, StateQuery, StateRow},
    tally::{Count, Parked, Vitals},
};

/// Each method is one atomic durable step, shares its commit with whatever else arrived in the
/// same moment, and happens even if its future is dropped half way.
///
/// Whose clock rules: SQLite's is the process', PostgreSQL's is the database server's, so that
/// nodes agree on when a lease ends.
pub trait Store: Manage + Streams + Read + Curate + Record + Send + Sync + std::fmt::Debug {
    /// Pushes and acknowledges, and says whom that makes ready. A message whose transaction id
    /// its partition already has is not stored again, so that repeating a push is safe.
    fn step(&self, step: Arc<Step>) -> BoxFuture<'_, Result<Done, Error>>;

    /// Claims the next messages for the group: leased under `lease` for as long as the queue says
    /// (by default `time`), or acknowledged at once.
    fn pop(
        &self,
        request: Arc<PopRequest>,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Popped, Error>>;

    /// Undoes a claim that reached nobody. The numbers of the partitions where it was still the
    /// caller's to give back.
    fn hand_back(&self, claim: Arc<Claimed>) -> BoxFuture<'_, Result<Vec<i64>, Error>>;

    /// Makes a lease last for at least `time` from now. In how many partitions, and until when
    /// (microseconds since 1970); nothing if it is over.
    fn extend(
        &self,
        lease: Uuid,
        time: Duration,
    ) -> BoxFuture<'_, Result<Option<(usize, i64)>, Error>>;

    /// Of all these places, where something is ready or when it will be; in one statement.
    fn recheck(&self, waiting: Vec<Waiting>) -> BoxFuture<'_, Result<Vec<Due>, Error>>;
}

/// Queues and groups as things.
pub trait Manage {
    /// Makes the queue or gives it other options; what is not given is at its default again.
    fn configure(&self, options: NewOptions) -> BoxFuture<'_, Result<Configured, Error>>;

    /// How many partitions it had, if there was one. Its messages are swept afterwards.
    fn delete_queue(&self, queue: String) -> BoxFuture<'_, Result<Option<i64>, Error>>;

    /// Forgets a group's cursors: it then begins where it began at first or, without that memory
    /// (`with_start`), as a new one. How many cursors there were.
    fn delete_group(
        &self,
        scope: GroupScope,
        with_start: bool,
    ) -> BoxFuture<'_, Result<u64, Error>>;

    /// Moves a group's cursors; leases and failures are forgotten.
    fn seek(&self, scope: GroupScope, to: Seek) -> BoxFuture<'_, Result<Sought, Error>>;

    /// Where the group begins in what it has not seen yet (microseconds since 1970). In how many
    /// queues it is known.
    fn subscribe(&self, group: String, begin_us: i64) -> BoxFuture<'_, Result<u64, Error>>;

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>>;

    fn set_push_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>>;

    fn set_pop_paused(&self, paused: bool) -> BoxFuture<'_, Result<Modes, Error>>;

    /// Removes a slice of what is too old, or of what is left of deleted queues.
    fn sweep(&self, limit: u32) -> BoxFuture<'_, Result<Swept, Error>>;
}

/// State of stream queries.
pub trait Streams {
    fn register(&self, query: Registration) -> BoxFuture<'_, Result<Registered, Error>>;

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>>;
}

/// What nodes write of what they do and how they are doing; each is one statement, which also
/// forgets what is too old to be shown.
pub trait Record {
    /// Adds to what all nodes have counted.
    fn add_counts(&self, counts: Vec<Count>) -> BoxFuture<'_, Result<(), Error>>;

    /// Puts these in the place of what this node has told of the same queues and minutes.
    fn set_parked(
        &self,
        node: (String, i64),
        parked: Vec<Parked>,
    ) -> BoxFuture<'_, Result<(), Error>>;

    /// Puts these in the place of what this node has told of the same minute; its messages add up.
    fn set_vitals(&self, vitals: Vitals) -> BoxFuture<'_, Result<(), Error>>;

    /// How much of the database this process uses.
    fn load(&self) -> Load;
}
