//! The durable steps. Two implementations: SQLite and PostgreSQL.

mod checks;
mod names;
pub mod postgres;
mod prepared;
mod rows;
mod sql;
pub mod sqlite;
mod text;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use wakeline_bus::{Wakes, Write};
use wakeline_store::Error;
use wakeline_wake::Wake;

use crate::{
    DOOR,
    fact::{Envelope, Fact, Kind, Reference, Signature},
    query::Query,
    topic,
};

/// Bytes of the name of a type or role: PostgreSQL's indexes take no longer ones.
pub const MAX_NAME: usize = 1_000;

/// What is read. What is written is a [`Write`].
pub type Step<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// A fact's place in the order of all facts of the store: a predecessor's is before its successors'.
/// On PostgreSQL it is taken before the commit: see [`Horizon`].
pub type Position = i64;

/// How far the order is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// No fact at or before this will appear any more: whoever has read up to here has all.
    pub settled: Position,
    /// The last that was given to any save, under way ones too, and those that came to nothing.
    pub last: Position,
}

pub trait Store:
    Facts + Queries + Checks + Definitions + Keys + Purging + Send + Sync + std::fmt::Debug
{
}

impl<S> Store for S where
    S: Facts + Queries + Checks + Definitions + Keys + Purging + Send + Sync + std::fmt::Debug
{
}

pub trait Facts {
    /// All of it or nothing, each predecessor before its successors. Known facts are left alone, but
    /// for new signatures; so it may be repeated, and of two that save the same one has it as new.
    /// Shares its commit with what else arrived in the same moment. Names of types and roles have no
    /// NUL and at most [`MAX_NAME`] bytes, else PostgreSQL refuses them.
    fn save(&self, envelopes: Arc<[Envelope]>) -> Write<Saved>;

    /// Where they are; `None` for what is not stored.
    fn find(&self, references: Vec<Reference>) -> Step<'_, Vec<Option<Position>>>;

    /// These and all their ancestors, each once, ascending: predecessors come first.
    fn closure(&self, of: Vec<Position>) -> Step<'_, Vec<Position>>;

    /// In the order asked for; what is gone (purged) is left out.
    fn facts(&self, at: Vec<Position>) -> Step<'_, Vec<Stored>>;

    /// Of one store it never goes back; another node's may be some saves behind.
    fn horizon(&self) -> Step<'_, Horizon>;

    /// The facts after a position, which is settled, up to the horizon: at most so many, in order.
    fn log(&self, after: Position, limit: usize) -> Step<'_, Log>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// Those that were not known, by their place in what was sent.
    Stored { new: Vec<(usize, Position)> },
    /// Nothing was saved: this one is named as a predecessor and neither stored nor sent before.
    Missing { predecessor: Reference },
}

impl Saved {
    fn new_facts(&self) -> usize {
        match self {
            Self::Stored { new } => new.len(),
            Self::Missing { .. } => 0,
        }
    }
}

/// A save, by whichever way it comes: new facts are counted, and each node's follower reads them.
fn saving(run: impl Future<Output = Result<Saved, Error>> + Send + 'static) -> Write<Saved> {
    let wakes = |saved: &Saved| match saved.new_facts() {
        0 => Wakes::none(),
        _ => Wake::all(topic::log()).into(),
    };
    Write::new(DOOR, run, wakes).map(|saved| {
        let new = saved.new_facts() as u64;
        metrics::counter!("wakeline_feed_facts_saved_total").increment(new);
        saved
    })
}

/// A write of what no stream waits for: definitions, keys, and facts that go.
fn silent<T: Send + 'static>(
    run: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Write<T> {
    Write::new(DOOR, run, |_| Wakes::none())
}

#[derive(Clone, Debug)]
pub struct Stored {
    pub position: Position,
    pub fact: Fact,
    pub signatures: Vec<Signature>,
    /// Microseconds since 1970.
    pub learned: i64,
}

#[derive(Clone, Debug)]
pub struct Log {
    /// What was asked for.
    pub after: Position,
    /// In order.
    pub entries: Vec<LogEntry>,
    /// Everything up to here is in the entries: the last one's position if there may be more, else
    /// the settled horizon.
    pub to: Position,
    /// [`Horizon::last`]. Beyond `to` without more entries: saves are under way, look again soon.
    pub last: Position,
}

#[derive(Clone, Debug)]
pub struct LogEntry {
    pub position: Position,
    pub reference: Reference,
    /// Role and position.
    pub predecessors: Vec<(Arc<str>, Position)>,
}

pub trait Queries {
    /// Tuples of a feed, a slice at a time. A page costs what is on it; where a slice begins, also as
    /// many facts as the new ones of its output's type or those between the given and that output,
    /// whichever are fewer.
    fn slice(&self, slice: Slice) -> Step<'_, Vec<Row>>;

    /// Tuples from many givens at once, all that there are up to a position.
    fn gather(&self, gather: Gather) -> Step<'_, Vec<Gathered>>;

    /// Which givens new facts can concern, when they stand at `variable`.
    fn concerned(&self, asked: Concerned) -> Step<'_, Vec<Concern>>;
}

/// Tuples of `query` from the facts `given` on, whose facts are all at or before `to`, and of whose
/// outputs the first that is after `from`, in the order of outputs, is that of `newest`. So the
/// slices of all outputs are just what came in `(from, to]`, each tuple once; with `from` 0 the first
/// output's slice is everything.
#[derive(Clone, Debug)]
pub struct Slice {
    pub query: Arc<Query>,
    pub given: Vec<Position>,
    pub from: Position,
    pub to: Position,
    /// Index into the query's outputs.
    pub newest: usize,
    /// Where the last slice ended.
    pub after: Option<Cursor>,
    pub limit: usize,
}

/// A row's place in its slice.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// Chosen where a slice begins, and kept to its end.
    pub way: Way,
    /// The row's variables, in an order that only the store knows.
    pub at: Vec<Position>,
}

/// From which end the tuples of a slice are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    FromGiven,
    /// From the new facts of the span.
    FromNew,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What [`Slice::after`] takes.
    pub at: Cursor,
    /// The tuple.
    pub outputs: Vec<(Position, Reference)>,
}

#[derive(Clone, Debug)]
pub struct Gather {
    pub query: Arc<Query>,
    pub givens: Arc<[Vec<Position>]>,
    pub to: Position,
    /// Where the last ended: the number of its given, and a row.
    pub after: Option<(usize, Cursor)>,
    pub limit: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// The number of the given.
    pub of: usize,
    pub row: Row,
}

#[derive(Clone, Debug)]
pub struct Concerned {
    pub query: Arc<Query>,
    /// A variable of the query that the facts may stand at; they have its type.
    pub variable: usize,
    pub facts: Vec<Position>,
    /// The givens that somebody waits with, for where they cannot be found by going to predecessors,
    /// or where that finds too many. Without them at most [`MAX_CONCERNS`] are found.
    pub watched: Vec<Vec<Position>>,
}

/// Ways from new facts to givens that are told without knowing who waits with which. A fact may have
/// thousands of predecessors on each level.
pub const MAX_CONCERNS: usize = 50_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concern {
    pub fact: Position,
    /// `None` where the fact does not say which.
    pub given: Vec<Option<Position>>,
}

pub trait Checks {
    /// For each of the givens, in their order, whether the query finds anything from them on. All
    /// are one question.
    fn holds(&self, query: Arc<Query>, given: Vec<Vec<Position>>) -> Step<'_, Vec<bool>>;
}

pub trait Purging {
    /// Facts of a type after a position, at most so many, in order.
    fn of_kind(&self, kind: Kind, after: Position, limit: usize) -> Step<'_, Vec<Position>>;

    /// Removes the descendants of `root`, but not the facts of `keep` and their ancestors. At most
    /// so many at once, newest first, so that what is left has its predecessors; all are gone when
    /// fewer come back. What was removed can be saved again.
    fn purge(&self, root: Position, keep: Vec<Position>, limit: usize) -> Write<Vec<Position>>;

    /// A position that no fact has: when it is settled, all saves are done that had looked for
    /// anything before.
    fn fence(&self) -> Write<Position>;

    /// Removes what was saved onto facts while they were purged: a save that had found them. To be
    /// asked when a [`fence`](Purging::fence) is settled that was put up after the purge.
    fn purge_orphans(&self, of: Vec<Position>) -> Write<usize>;
}

/// A feed, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The URL-safe hash.
    pub hash: Box<str>,
    /// The feed's specification, as text of the language.
    pub text: Box<str>,
    /// In the order of the specification's givens.
    pub given: Vec<Reference>,
    /// Whose it is, where a distribution rule has bound it to a user.
    pub owner: Option<Reference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    pub definition: Definition,
    /// Its use was noted more than [`REFRESHED_AFTER`] ago.
    pub is_stale: bool,
}

/// When a definition was last used is known to a day, in microseconds.
pub const REFRESHED_AFTER: i64 = 86_400_000_000;

pub trait Definitions {
    /// Kept until nobody has asked for it for a long time. One that is known stays as it is: the hash
    /// stands for all of it. Writes only what is new, and at most once a day that it is used.
    fn define(&self, definitions: Vec<Definition>) -> Write<()>;

    /// Writes nothing. Whoever asks for one that has not been used for a day notes that it is.
    fn definition(&self, hash: String) -> Step<'_, Option<StoredDefinition>>;

    /// Notes that a definition is used, at most once a day.
    fn refresh_definition(&self, hash: String) -> Write<()>;

    /// Forgets what nobody has asked for since a time, some days ago at least; returns how many.
    fn forget_definitions(&self, since: i64) -> Write<u64>;
}

/// Who a key belongs to: a provider's name and the user's id there.
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
    fn key(&self, of: Principal) -> Step<'_, Option<KeyPair>>;

    /// Whoever comes first decides: what is kept is returned.
    fn keep_key(&self, of: Principal, key: KeyPair) -> Write<KeyPair>;
}
