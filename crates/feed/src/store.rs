//! The traits of the feeds' store, with two implementations: SQLite and PostgreSQL.
//!
//! The contract of every method, unless its own doc says otherwise: a method is atomic. A method
//! that reads returns a [`StoreFuture`], may be repeated, and writes nothing, so dropping its
//! future only loses the answer. One that writes returns a [`Write`]: [`Write::commit`] runs it in
//! a task that outlives its caller.

mod names;
pub mod postgres;
mod prepared;
mod queries;
mod rows;
mod sql;
pub mod sqlite;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;
use wakeline_wake::Wake;

use crate::{
    DOOR,
    fact::{Envelope, Fact, Kind, Reference, Signature},
    metrics,
    query::Query,
    topic,
};

/// Bytes of the name of a type or role: PostgreSQL's indexes take no longer ones.
pub const MAX_NAME: usize = 1_000;

/// The answer to a read.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A fact's number in the order of all facts of the store: a predecessor's is below its
/// successors'. On PostgreSQL it is drawn before the commit: see [`Horizon`].
pub type Seq = i64;

/// Up to where the order of facts is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// No fact will appear any more with this seq or a lower one: a reader that has read up to here
    /// has all of them.
    pub settled: Seq,
    /// The last seq that any save drew, one under way or one that failed included.
    pub last: Seq,
}

pub trait Store:
    Facts + Queries + Definitions + Keys + Removals + Send + Sync + std::fmt::Debug
{
}

impl<S> Store for S where
    S: Facts + Queries + Definitions + Keys + Removals + Send + Sync + std::fmt::Debug
{
}

pub trait Facts {
    /// Saves all of the facts or none; each predecessor comes before its successors. Stored facts
    /// stay as they are and get the new signatures, so a repeat changes nothing. If two saves have
    /// the same fact, it is new to one of them. A save shares its commit with others that arrived
    /// meanwhile, and fails alone. Names of types and roles have no NUL and at most [`MAX_NAME`]
    /// bytes, else PostgreSQL refuses them.
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<SaveOutcome>;

    /// The seq of each reference; `None` if it is not stored.
    fn find(&self, references: Vec<Reference>) -> StoreFuture<'_, Vec<Option<Seq>>>;

    /// These facts and all their ancestors, each once, ascending: predecessors come first.
    fn closure(&self, of: Vec<Seq>) -> StoreFuture<'_, Vec<Seq>>;

    /// In the order of the request, without the facts that are not stored (any more).
    fn facts(&self, at: Vec<Seq>) -> StoreFuture<'_, Vec<StoredFact>>;

    /// From one store object it never goes back; another node's may be some saves behind.
    fn horizon(&self) -> StoreFuture<'_, Horizon>;

    /// The facts after a settled seq and up to the horizon, in order: at most `limit`. Read at one
    /// moment, horizon and facts together.
    fn log(&self, after: Seq, limit: usize) -> StoreFuture<'_, Log>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SaveOutcome {
    /// The facts that were new, by their index in the request.
    Stored { new: Vec<(usize, Seq)> },
    /// Nothing was saved: this predecessor is neither stored nor sent before its successor.
    Missing { predecessor: Reference },
}

impl SaveOutcome {
    fn new_facts(&self) -> usize {
        match self {
            Self::Stored { new } => new.len(),
            Self::Missing { .. } => 0,
        }
    }
}

/// Every save, a client's or a first login's: it counts new facts, and wakes each node's follower
/// to read them.
fn saving(
    run: impl Future<Output = Result<SaveOutcome, Error>> + Send + 'static,
) -> Write<SaveOutcome> {
    let wakes = |saved: &SaveOutcome| match saved.new_facts() {
        0 => Wakes::none(),
        _ => Wake::all(topic::log()).into(),
    };
    Write::new(DOOR, run, wakes).map(|saved| {
        metrics::facts_saved(saved.new_facts() as u64);
        saved
    })
}

/// A write that no stream waits for: of definitions and keys, and the removal of facts.
fn silent<T: Send + 'static>(
    run: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Write<T> {
    Write::new(DOOR, run, |_| Wakes::none())
}

/// For a statement's LIMIT.
fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

#[derive(Clone, Debug)]
pub struct StoredFact {
    pub seq: Seq,
    pub fact: Fact,
    pub signatures: Vec<Signature>,
    /// Microseconds since 1970.
    pub saved_at: i64,
}

#[derive(Clone, Debug)]
pub struct Log {
    /// The request's.
    pub after: Seq,
    /// In order.
    pub entries: Vec<LogEntry>,
    /// Every fact up to here is in the entries. If there may be more, it is the last entry's seq,
    /// else the settled horizon.
    pub to: Seq,
    /// [`Horizon::last`]. If it is beyond `to` and the entries are not full, saves are under way:
    /// read on soon.
    pub last: Seq,
}

#[derive(Clone, Debug)]
pub struct LogEntry {
    pub seq: Seq,
    pub reference: Reference,
    /// Role and seq.
    pub predecessors: Vec<(Arc<str>, Seq)>,
}

/// PostgreSQL may answer a query with several statements, each of what is committed when it runs.
/// All are bounded by a settled seq, so only a purge meanwhile can make a difference.
pub trait Queries {
    /// A page of a feed's tuples. It costs as much as the page has. The first page of a delta also
    /// costs as much as the new facts of its output's type, or as the facts between the given and
    /// that output, whichever are fewer.
    fn delta_page(&self, delta: DeltaQuery) -> StoreFuture<'_, Vec<TupleRow>>;

    /// A page of all tuples from many lists of givens on.
    fn tuples_of(&self, query: TuplesQuery) -> StoreFuture<'_, Vec<GivenTuple>>;

    /// The givens that new facts can concern, if they stand at the query's variable.
    fn concerns(&self, query: ConcernQuery) -> StoreFuture<'_, Vec<Concern>>;

    /// For each list of givens whether the query finds any tuple: one statement for all of them.
    fn matches(&self, query: Arc<Query>, givens: Vec<Vec<Seq>>) -> StoreFuture<'_, Vec<bool>>;
}

/// Tuples of `query` from the facts `given` on. All their facts are at or before `to`, and their
/// first output after `from`, in the order of outputs, is `first_new_output`. So the deltas of all
/// outputs together have exactly the tuples of `(from, to]`, each once. With `from` 0 the
/// first output's delta has every tuple.
#[derive(Clone, Debug)]
pub struct DeltaQuery {
    pub query: Arc<Query>,
    pub given: Vec<Seq>,
    pub from: Seq,
    pub to: Seq,
    /// Index into the query's outputs.
    pub first_new_output: usize,
    /// Where the last page ended.
    pub cursor: Option<RowCursor>,
    pub limit: usize,
}

/// Where in a delta a row is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowCursor {
    /// Chosen for the first page of a delta, and kept to its end.
    pub direction: ScanDirection,
    /// The row's variables, in an order that only the store knows.
    pub at: Vec<Seq>,
}

/// From which end the tuples of a delta are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScanDirection {
    FromGiven,
    /// From the new facts of the span.
    FromNew,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TupleRow {
    /// For [`DeltaQuery::cursor`].
    pub at: RowCursor,
    /// The tuple.
    pub outputs: Vec<(Seq, Reference)>,
}

#[derive(Clone, Debug)]
pub struct TuplesQuery {
    pub query: Arc<Query>,
    pub givens: Arc<[Vec<Seq>]>,
    pub to: Seq,
    /// Where the last page ended: the index of its given, and a row.
    pub cursor: Option<(usize, RowCursor)>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenTuple {
    /// The index of its given.
    pub given: usize,
    pub row: TupleRow,
}

#[derive(Clone, Debug)]
pub struct ConcernQuery {
    pub query: Arc<Query>,
    /// A variable of the query; the facts have its type.
    pub variable: usize,
    pub facts: Vec<Seq>,
    /// The givens that streams wait with. Needed where givens cannot be found by going to
    /// predecessors, or where that finds too many. Without them at most [`MAX_CONCERNS`] are found.
    pub watched: Vec<Vec<Seq>>,
}

/// Concerns that are found without knowing which givens are watched. A fact may have thousands of
/// predecessors on each level.
pub const MAX_CONCERNS: usize = 50_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concern {
    pub fact: Seq,
    /// `None` where the fact does not say which.
    pub given: Vec<Option<Seq>>,
}

pub trait Removals {
    /// Facts of a type after a seq, in order: at most `limit`.
    fn facts_of_type(&self, kind: Kind, after: Seq, limit: usize) -> StoreFuture<'_, Vec<Seq>>;

    /// Removes descendants of `root`, newest first, but not the facts of `keep` and their
    /// ancestors; returns them. It removes at most `limit` and so has to be repeated until it
    /// returns fewer; between two calls every fact that is left has its predecessors. A removed
    /// fact can be saved again.
    fn purge(&self, root: Seq, keep: Vec<Seq>, limit: usize) -> Write<Vec<Seq>>;

    /// Draws a seq that no fact has. When it is settled, all saves have ended that looked anything
    /// up before. Each call draws another one.
    fn fence(&self) -> Write<Seq>;

    /// Removes what was saved onto facts while they were purged, by saves that had found them. To
    /// be called when a [`fence`](Removals::fence) that was drawn after the purge is settled. A
    /// repeat removes nothing.
    fn purge_orphans(&self, of: Vec<Seq>) -> Write<usize>;
}

/// A feed, as a client declared it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The URL-safe hash.
    pub hash: Box<str>,
    /// The feed's specification, as text of the language.
    pub text: Box<str>,
    /// In the order of the specification's givens.
    pub given: Vec<Reference>,
    /// The one user that it is for, where a distribution rule has bound it to one.
    pub owner: Option<Reference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    pub definition: Definition,
    /// Its last use was noted more than [`REFRESHED_AFTER`] ago: refresh it.
    pub is_stale: bool,
}

/// When a definition was last used is known to a day, in microseconds.
pub const REFRESHED_AFTER: i64 = 86_400_000_000;

pub trait Definitions {
    /// Stores new definitions, and notes at most once a day that stored ones are used. A stored one
    /// stays as it is, because its hash stands for all of it, so a repeat changes nothing.
    fn define(&self, definitions: Vec<Definition>) -> Write<()>;

    fn definition(&self, hash: String) -> StoreFuture<'_, Option<StoredDefinition>>;

    /// Notes that a definition is used. A repeat within [`REFRESHED_AFTER`] changes nothing.
    fn refresh_definition(&self, hash: String) -> Write<()>;

    /// Forgets the definitions that were not used since a time, some days ago at least; returns how
    /// many. On PostgreSQL in several transactions: after an error, some may be forgotten.
    fn forget_definitions(&self, since: i64) -> Write<u64>;
}

/// The owner of a key: a provider's name and the user's id there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    pub provider: String,
    pub id: String,
}

#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair {
    pub public: Arc<str>,
    pub private: Arc<str>,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("KeyPair")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

pub trait Keys {
    fn key(&self, of: Principal) -> StoreFuture<'_, Option<KeyPair>>;

    /// Stores a key unless the principal has one; returns the stored one. So of several callers the
    /// first decides, and a repeat changes nothing.
    fn store_key(&self, of: Principal, key: KeyPair) -> Write<KeyPair>;
}
