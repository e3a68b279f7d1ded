//! The store of the queue door. Two implementations: [`sqlite`] and [`postgres`].

pub mod postgres;
pub mod read;
pub mod sqlite;
pub mod statements;
mod wakes;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::{DueWake, Write};
use wakeline_store::{Error, Load};
use wakeline_wake::WaitedKey;

use self::read::ReadStore;
use crate::{
    browse::{DeadLetterRetry, MessageAddress, NewTrace, RetryOutcome},
    claim::{Claim, PopOutcome, PopRequest},
    counters::{CounterRow, HeldPops, NodeStats},
    queue_admin::{ConfigureRequest, ConfigureResult, GroupScope, PauseModes, Seek, SweepResult},
    seal::Fingerprint,
    stream::{RegisterResult, StateQuery, StateRow, StreamRegistration},
    write_batch::{BatchOutcome, WriteBatch},
};

/// How long counters are kept.
pub const COUNTERS_KEPT_SECONDS: i64 = 90 * 86_400;
/// How long held pops and node statistics are kept.
pub const GAUGES_KEPT_SECONDS: i64 = 7 * 86_400;

/// The contract of every method here and of the other traits, unless its doc says otherwise:
///
/// * It is atomic, and shares its commit with the other calls that arrive in the same moment.
/// * A method that writes returns a [`Write`], which has the waiters that it wakes (`wakes.rs`).
///   Nothing is written before `Write::commit`, and from then on the write happens even if its
///   caller is dropped. A method that reads returns a future, which may be dropped at any time.
/// * Calling it again with the same arguments has the same effect as calling it once.
///
/// Time: SQLite's is the process' clock, PostgreSQL's is the database server's, so that nodes agree
/// on when a lease ends.
pub trait Store:
    QueueAdmin + StreamStore + ReadStore + MessageAdmin + StatsStore + Send + Sync + std::fmt::Debug
{
    /// Pushes and acknowledges, and says which groups that makes ready. Repeated: a message whose
    /// transaction id its partition already has is not stored again; a message without one is. An
    /// acknowledgement of a completed message changes nothing; a failure counts again.
    ///
    /// Atomic, with one exception on PostgreSQL: messages to a queue that is deleted at the same
    /// moment are stored in a second transaction. If only that one fails, the outcome is unknown.
    fn apply(&self, batch: Arc<WriteBatch>) -> Write<BatchOutcome>;

    /// Claims the next messages for the group: leased under `lease` for as long as the request says,
    /// else the queue, else `time`; or acknowledged at once. Repeated, it claims further messages.
    fn pop(&self, request: Arc<PopRequest>, lease: Uuid, time: Duration) -> Write<PopOutcome>;

    /// Undoes a claim that did not reach its client. Returns the partitions where the claim was
    /// still valid; repeated, none.
    fn release_claim(&self, claim: Arc<Claim>) -> Write<Vec<i64>>;

    /// Makes a lease last for at least `time` from now. In how many partitions, and until when
    /// (microseconds since 1970); nothing if the lease has expired.
    fn extend(&self, lease: Uuid, time: Duration) -> Write<Option<(usize, i64)>>;

    /// Where of all these keys something is ready, or when it will be; in one or two statements.
    fn recheck(&self, waiting: Vec<WaitedKey>) -> BoxFuture<'_, Result<Vec<DueWake>, Error>>;
}

/// Queues and groups. What holds for every method is said at [`Store`].
pub trait QueueAdmin {
    /// Creates the queue or replaces its options; an option that is not given gets its default.
    /// Nothing, if the queue's options are not those that the new ones were made of.
    fn configure(&self, request: ConfigureRequest) -> Write<Option<ConfigureResult>>;

    /// Makes the first of a server's keys the one that the store's messages are sealed with, if that is
    /// one of its keys, or if the store has none and `may_be_first`. Returns the store's key.
    fn use_key(&self, keys: Vec<Fingerprint>, may_be_first: bool) -> Write<Option<Fingerprint>>;

    /// How many partitions the queue had, if there was one. Its messages are swept afterwards.
    fn delete_queue(&self, queue: String) -> Write<Option<i64>>;

    /// Deletes a group's cursors. The group then starts where it started at first or, if `with_start`
    /// forgets that too, as a new one. How many cursors there were.
    fn delete_group(&self, scope: GroupScope, with_start: bool) -> Write<u64>;

    /// Moves a group's cursors; leases and failures are forgotten. In how many partitions.
    fn seek(&self, scope: GroupScope, to: Seek) -> Write<u64>;

    /// Sets where the group starts in partitions that it has not read yet (microseconds since 1970).
    /// In how many queues the group is known.
    fn subscribe(&self, group: String, begin_us: i64) -> Write<u64>;

    fn modes(&self) -> BoxFuture<'_, Result<PauseModes, Error>>;

    fn set_push_paused(&self, paused: bool) -> Write<PauseModes>;

    fn set_pop_paused(&self, paused: bool) -> Write<PauseModes>;

    /// Removes up to `limit` segments that are too old or are left of deleted queues. Repeated, it
    /// removes the next ones.
    fn sweep(&self, limit: u32) -> Write<SweepResult>;
}

/// Single messages. What holds for every method is said at [`Store`].
pub trait MessageAdmin {
    /// Deletes a message for every group, and its dead letters. Whether there was one.
    fn delete_message(&self, address: MessageAddress) -> Write<bool>;

    /// Appends a dead letter as a new message for the group that had it, and removes the dead
    /// letter. Repeated, it finds none.
    fn retry(&self, retry: DeadLetterRetry) -> Write<RetryOutcome>;

    /// Makes a message a dead letter of the groups (or of the one named) that have neither consumed
    /// nor leased it. Of how many.
    fn move_to_dead_letters(
        &self,
        address: MessageAddress,
        group: Option<String>,
        error: String,
    ) -> Write<u64>;

    /// Repeated, it fails: a trace has an id of its own.
    fn add_trace(&self, trace: NewTrace) -> Write<()>;
}

/// The state of stream queries. What holds for every method is said at [`Store`].
pub trait StreamStore {
    /// Registers a stream query under its name, or finds it again.
    fn register(&self, query: StreamRegistration) -> Write<RegisterResult>;

    fn states(&self, query: StateQuery) -> BoxFuture<'_, Result<Vec<StateRow>, Error>>;
}

/// Statistics that nodes write. Each write also deletes what is older than it is kept for. What else
/// holds for every method is said at [`Store`].
pub trait StatsStore {
    /// Adds to what all nodes have counted. Repeated, it adds again.
    fn add_counts(&self, counters: Vec<CounterRow>) -> Write<()>;

    /// Replaces what this node has written for the same queues and minutes.
    fn set_held_pops(&self, node: (String, i64), held_pops: Vec<HeldPops>) -> Write<()>;

    /// Replaces what this node has written for the same minute; its messages add up.
    fn set_node_stats(&self, stats: NodeStats) -> Write<()>;

    /// How much of the database this process uses.
    fn load(&self) -> Load;
}
