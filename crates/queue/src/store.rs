//! The durable steps. Two implementations: [`sqlite`] and [`postgres`].

pub mod browse;
pub mod postgres;
pub mod read;
pub mod sqlite;
mod wakes;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::{DueWake, Write};
use wakeline_store::{Error, Load};
use wakeline_wake::WaitedKey;

use self::{browse::Curate, read::Read};
use crate::{
    claim::{Claimed, PopRequest, Popped},
    manage::{Configured, GroupScope, Modes, NewOptions, Seek, Swept},
    step::{Done, Step},
    stream::{Registered, Registration, StateQuery, StateRow},
    tally::{Count, Parked, Vitals},
};

/// Each method is one atomic durable step and shares its commit with whatever else arrived in the
/// same moment. One that writes returns a [`Write`], which says whom it makes ready (`wakes.rs`)
/// and, once committed, happens even if its caller is dropped half way.
///
/// Whose clock rules: SQLite's is the process', PostgreSQL's is the database server's, so that
/// nodes agree on when a lease ends.
pub trait Store: Manage + Streams + Read + Curate + Record + Send + Sync + std::fmt::Debug {
    /// Pushes and acknowledges, and says whom that makes ready. A message whose transaction id
    /// its partition already has is not stored again, so that repeating a push is safe.
    fn step(&self, step: Arc<Step>) -> Write<Done>;

    /// Claims the next messages for the group: leased under `lease` for as long as the queue says
    /// (by default `time`), or acknowledged at once.
    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<Popped>;

    /// Undoes a claim that reached nobody. The numbers of the partitions where it was still the
    /// caller's to give back.
    fn hand_back(&self, claim: Arc<Claimed>) -> Write<Vec<i64>>;

    /// Makes a lease last for at least `time` from now. In how many partitions, and until when
    /// (microseconds since 1970); nothing if it is over.
    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>>;

    /// Of all these places, where something is ready or when it will be; in one statement.
    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>>;
}

/// Queues and groups as things.
pub trait Manage {
    /// Makes the queue or gives it other options; what is not given is at its default again.
    fn configure(&self, options: NewOptions) -> Write<Configured>;

    /// How many partitions it had, if there was one. Its messages are swept afterwards.
    fn delete_queue(&self, queue: String) -> Write<Option<i64>>;

    /// Forgets a group's cursors: it then begins where it began at first or, without that memory
    /// (`with_start`), as a new one. How many cursors there were.
    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64>;

    /// Moves a group's cursors; leases and failures are forgotten. In how many partitions.
    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64>;

    /// Where the group begins in what it has not seen yet (microseconds since 1970). In how many
    /// queues it is known.
    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64>;

    fn modes(&self) -> BoxFuture<'_, Result<Modes, Error>>;

    fn set_push_paused(&self, paused: bool) -> Write<Modes>;

    fn set_pop_paused(&self, paused: bool) -> Write<Modes>;

    /// Removes a slice of what is too old, or of what is left of deleted queues.
    fn sweep(&self, limit: u32) -> Write<Swept>;
}

/// State of stream queries.
pub trait Streams {
    fn register(&self, query: Registration) -> Write<Registered>;

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>>;
}

/// What nodes write of what they do and how they are doing; each is one statement, which also
/// forgets what is too old to be shown.
pub trait Record {
    /// Adds to what all nodes have counted.
    fn add_counts(&self, counts: Vec<Count>) -> Write<()>;

    /// Puts these in the place of what this node has told of the same queues and minutes.
    fn set_parked(&self, node: (String, i64), parked: Vec<Parked>) -> Write<()>;

    /// Puts these in the place of what this node has told of the same minute; its messages add up.
    fn set_vitals(&self, vitals: Vitals) -> Write<()>;

    /// How much of the database this process uses.
    fn load(&self) -> Load;
}
