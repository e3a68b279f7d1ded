//! The rules of a step, as a book that is opened, written in and closed: a store reads the rows
//! that the steps concern, the book decides in memory, and the store writes what has changed. Both
//! stores share it, so there is one place where it says what a push or an acknowledgement does.

mod ack;
mod push;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    ack::{Ack, Outcome},
    id,
    segment::Body,
    step::{Done, Rejection, StateChange, Step},
    topic::{self, QueueName},
};
pub use ack::{Cursor, Mark, Retry};

/// Microseconds since 1970.
pub type Micros = i64;

/// Of a queue, what a push has to know.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    pub id: i64,
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub delay_us: i64,
    pub is_sealed: bool,
    /// 0: no limit.
    pub max_size: i64,
}

impl QueueFacts {
    #[must_use]
    pub fn names(&self) -> QueueName<'_> {
        QueueName {
            name: &self.name,
            namespace: &self.namespace,
            task: &self.task,
        }
    }
}

/// A partition's row.
#[derive(Clone, Debug)]
pub struct Partition {
    pub name: String,
    pub queue: Arc<QueueFacts>,
    pub next: i64,
    pub last_us: Micros,
    /// The store holds its lock: this is its end. It does where it is pushed to, and where the last
    /// message is acknowledged.
    pub is_locked: bool,
}

/// What the store knows of the message that an acknowledgement is about.
#[derive(Clone, Debug)]
pub struct Target {
    pub group: i64,
    /// Where the message is, if its transaction id is known.
    pub at: Option<i64>,
    /// Where the partition ends at least.
    pub next: i64,
    pub retry: Retry,
}

/// One acknowledgement of a step, by its index there.
type Said<'a> = (usize, &'a Ack, &'a Target);

/// The rows that were read.
#[derive(Debug, Default)]
pub struct Book {
    pub now: Micros,
    pub push_paused: bool,
    pub partitions: BTreeMap<i64, Partition>,
    /// By queue, where it has a limit: how many messages some group has still to consume.
    pub sizes: HashMap<i64, i64>,
    /// By partition and hash: where a message with this transaction id is, and since when.
    pub known: HashMap<(i64, Uuid), (i64, Micros)>,
    pub cursors: BTreeMap<(i64, i64), Cursor>,
    /// By partition, group and position; only for cursors that have some.
    pub marks: BTreeMap<(i64, i64, i64), Mark>,
    /// Of the required leases, those that are alive.
    pub leases: HashSet<Uuid>,
    /// Of the streams whose state is changed, those that exist.
    pub streams: HashSet<Uuid>,
    pub changes: Changes,
}

/// What has to be written.
#[derive(Debug, Default)]
pub struct Changes {
    /// By partition.
    pub segments: BTreeMap<i64, Vec<NewSegment>>,
    /// Partition, hash, position.
    pub transactions: Vec<(i64, Uuid, i64)>,
    /// The cursors that have changed, and how many messages they have passed.
    pub moved: BTreeMap<(i64, i64), i64>,
    pub marked: BTreeMap<(i64, i64, i64), NewMark>,
    /// Cursors that have passed marks.
    pub forgotten: HashSet<(i64, i64)>,
    pub states: Vec<StateChange>,
}

impl Changes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.moved.is_empty() && self.states.is_empty()
    }
}

#[derive(Debug)]
pub struct NewSegment {
    pub first: i64,
    pub last: i64,
    pub body: Body,
}

/// A mark to be written; one that is dead and kept becomes a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMark {
    pub mark: Mark,
    pub is_kept: bool,
    pub transaction_id: String,
    pub error: Option<String>,
}

/// Where the messages of a step go, by their order in it: the partition's number, or nothing if
/// it has gone meanwhile.
pub type Destinations = [Option<i64>];

impl Book {
    /// Does one step. Whom the pushes make ready is told by [`Book::woken`], when the store has
    /// written them.
    pub fn write(
        &mut self,
        step: &Step,
        destinations: &Destinations,
        targets: &[Option<Target>],
    ) -> Done {
        if step.is_whole
            && let Some(rejection) = self.rejection(step, destinations, targets)
        {
            return Done {
                rejection: Some(rejection),
                ..Done::default()
            };
        }
        let mut done = Done {
            pushed: self.push(&step.pushes, destinations),
            ..Done::default()
        };
        (done.acked, done.ready) = self.acknowledge(step, targets);
        self.changes.states.extend(step.state.clone());
        done
    }

    /// Why a whole step cannot be done, found out without changing anything.
    fn rejection(
        &self,
        step: &Step,
        destinations: &Destinations,
        targets: &[Option<Target>],
    ) -> Option<Rejection> {
        if let Some(lease) = step.required.iter().find(|id| !self.leases.contains(id)) {
            return Some(Rejection::Lease(*lease));
        }
        if let Some(state) = &step.state
            && !self.streams.contains(&state.stream)
        {
            return Some(Rejection::Stream);
        }
        if let Some((index, refusal)) = self.first_refusal(&step.pushes, destinations) {
            return Some(Rejection::Push(index, refusal));
        }
        let mut trial = Self {
            now: self.now,
            cursors: self.cursors.clone(),
            marks: self.marks.clone(),
            partitions: self.partitions.clone(),
            ..Self::default()
        };
        let (outcomes, _) = trial.acknowledge(step, targets);
        let index = outcomes.iter().position(|outcome| !outcome.is_success())?;
        Some(Rejection::Ack(index, outcomes[index]))
    }

    /// Whom the pushes of a step make ready, given the groups whose cursors the store has made
    /// ready by partition. Each partition is told once, by the first step that pushed to it.
    pub fn woken(
        &self,
        destinations: &Destinations,
        groups: &mut HashMap<i64, Vec<String>>,
        told: &mut HashSet<i64>,
    ) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for number in destinations.iter().flatten() {
            let Some(segments) = self.changes.segments.get(number) else {
                continue;
            };
            let Some(partition) = self.partitions.get(number) else {
                continue;
            };
            if !told.insert(*number) {
                continue;
            }
            let queue = partition.queue.names();
            if segments[0].first == 0 {
                // Its first: those who wait may be of groups that nobody has seen yet.
                wakes.push(topic::ready(queue, &partition.name, None, 1));
                continue;
            }
            for group in groups.remove(number).unwrap_or_default() {
                wakes.push(topic::ready(queue, &partition.name, Some(&group), 1));
            }
        }
        wakes
    }

    fn acknowledge(
        &mut self,
        step: &Step,
        targets: &[Option<Target>],
    ) -> (Vec<Outcome>, Vec<Wake>) {
        let acks = &step.acks;
        let mut outcomes = vec![Outcome::Unknown; acks.len()];
        let mut wakes = Vec::new();
        let mut by_cursor: BTreeMap<(i64, i64), Vec<Said<'_>>> = BTreeMap::new();
        for (index, (ack, target)) in acks.iter().zip(targets).enumerate() {
            match target {
                Some(target) => by_cursor
                    .entry((ack.partition, target.group))
                    .or_default()
                    .push((index, ack, target)),
                None if ack.lease.is_some() => outcomes[index] = Outcome::LeaseLost,
                None => {}
            }
        }
        for (key, mut said) in by_cursor {
            said.sort_by_key(|(_, _, target)| target.at);
            let group = said[0].1.group.clone();
            let is_ready = self.settle(key, &said, &step.required, &mut outcomes);
            if is_ready && let Some(partition) = self.partitions.get(&key.0) {
                wakes.push(topic::ready(
                    partition.queue.names(),
                    &partition.name,
                    Some(&group),
                    1,
                ));
            }
        }
        (outcomes, wakes)
    }
}

/// Where the message of this transaction id is, if the id is one that the server gave.
#[must_use]
pub fn given_by_us(partition: i64, transaction_id: &str) -> Option<i64> {
    let (of, at) = id::place(&transaction_id.parse().ok()?)?;
    (of == partition).then_some(at)
}
