//! The rules of a write batch. A store loads the rows that the batches of a transaction concern into
//! a [`BatchState`], [`BatchState::apply`] decides in memory, and the store flushes what has changed.
//! Both databases share these rules, so it is said once what a push or an acknowledgement does.

mod ack;
mod push;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use uuid::Uuid;
use wakeline_wake::Wake;

use crate::{
    ack::{Ack, AckOutcome},
    id,
    seal::Fingerprint,
    segment::SegmentBody,
    topic::{self, QueueName},
    write_batch::{BatchOutcome, Rejection, StateChange, WriteBatch},
};
pub use ack::{Cursor, MessageFlag, RetryPolicy};

/// Microseconds since 1970.
pub type Micros = i64;

/// What a push has to know of its queue.
#[derive(Clone, Debug)]
pub struct PushedQueue {
    pub id: i64,
    pub name: String,
    pub namespace: String,
    pub task: String,
    pub delay_us: i64,
    pub is_sealed: bool,
    /// 0: no limit.
    pub max_size: i64,
}

impl PushedQueue {
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
    pub queue: Arc<PushedQueue>,
    pub next: i64,
    pub last_us: Micros,
    /// The store has locked the partition, so `next` is its end until the commit. The store locks
    /// partitions that are pushed to, and those whose last message is acknowledged.
    pub is_locked: bool,
}

/// The message that an acknowledgement names, as far as the store knows it.
#[derive(Clone, Debug)]
pub struct AckedMessage {
    pub group: i64,
    /// If its transaction id is known.
    pub position: Option<i64>,
    /// The partition ends here or later.
    pub partition_end: i64,
    pub retry: RetryPolicy,
}

/// An acknowledgement with its index in the batch and its message.
struct IndexedAck<'a> {
    index: usize,
    ack: &'a Ack,
    target: &'a AckedMessage,
}

/// The rows that were loaded, and what has to be written.
#[derive(Debug, Default)]
pub struct BatchState {
    pub now: Micros,
    pub push_paused: bool,
    /// The key that the store's messages are sealed with.
    pub key: Option<Fingerprint>,
    pub partitions: BTreeMap<i64, Partition>,
    /// By queue, if it has a limit: how many messages some group has still to consume.
    pub sizes: HashMap<i64, i64>,
    /// By partition and hash: where a message with this transaction id is, and since when.
    pub known_transactions: HashMap<(i64, Uuid), (i64, Micros)>,
    pub cursors: BTreeMap<(i64, i64), Cursor>,
    /// By partition, group and position.
    pub flags: BTreeMap<(i64, i64, i64), MessageFlag>,
    /// Of the required leases, those that are alive.
    pub leases: HashSet<Uuid>,
    /// Of the streams whose state changes, those that exist.
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
    /// By partition and group, the cursors that have changed: how many messages they have passed.
    pub consumed_by_cursor: BTreeMap<(i64, i64), i64>,
    /// By partition and group, the leases that nacks have ended.
    pub nacked_leases: BTreeMap<(i64, i64), Uuid>,
    pub new_flags: BTreeMap<(i64, i64, i64), NewMessageFlag>,
    /// Cursors that have passed flags.
    pub cursors_past_flags: HashSet<(i64, i64)>,
    pub states: Vec<StateChange>,
}

impl Changes {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.consumed_by_cursor.is_empty() && self.states.is_empty()
    }
}

#[derive(Debug)]
pub struct NewSegment {
    pub first: i64,
    pub last: i64,
    pub body: SegmentBody,
}

/// A flag to be written. If the message is dead and kept, it becomes a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessageFlag {
    pub flag: MessageFlag,
    pub is_kept: bool,
    pub transaction_id: String,
    pub error: Option<String>,
}

/// The partition's number of each message of a batch; nothing if the partition was deleted meanwhile.
pub type Destinations = [Option<i64>];

impl BatchState {
    /// Applies one batch. When the store has written its pushes, [`BatchState::wakes_of_pushes`]
    /// says the waiters that they wake.
    pub fn apply(
        &mut self,
        batch: &WriteBatch,
        destinations: &Destinations,
        targets: &[Option<AckedMessage>],
    ) -> BatchOutcome {
        if batch.is_whole
            && let Some(rejection) = self.rejection(batch, destinations, targets)
        {
            return BatchOutcome {
                rejection: Some(rejection),
                ..BatchOutcome::default()
            };
        }
        let mut done = BatchOutcome {
            pushed: self.push(batch, destinations),
            ..BatchOutcome::default()
        };
        (done.acked, done.wakes) = self.acknowledge(batch, targets);
        self.changes.states.extend(batch.state.clone());
        done
    }

    /// Why a whole batch cannot be done, found out without changing anything.
    fn rejection(
        &self,
        batch: &WriteBatch,
        destinations: &Destinations,
        targets: &[Option<AckedMessage>],
    ) -> Option<Rejection> {
        if let Some(lease) = batch.required.iter().find(|id| !self.leases.contains(id)) {
            return Some(Rejection::Lease(*lease));
        }
        if let Some(state) = &batch.state
            && !self.streams.contains(&state.stream)
        {
            return Some(Rejection::Stream);
        }
        if let Some((index, refusal)) = self.first_refusal(batch, destinations) {
            return Some(Rejection::Push(index, refusal));
        }
        let mut trial = Self {
            now: self.now,
            cursors: self.cursors.clone(),
            flags: self.flags.clone(),
            partitions: self.partitions.clone(),
            ..Self::default()
        };
        let (outcomes, _) = trial.acknowledge(batch, targets);
        let index = outcomes.iter().position(|outcome| !outcome.is_success())?;
        Some(Rejection::Ack(index, outcomes[index]))
    }

    /// The wakes for the pushes of a batch, given by partition the groups whose cursors the store has
    /// made ready. Each partition is woken once, for the first batch that pushed to it.
    pub fn wakes_of_pushes(
        &self,
        destinations: &Destinations,
        groups: &mut HashMap<i64, Vec<String>>,
        notified: &mut HashSet<i64>,
    ) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for number in destinations.iter().flatten() {
            let Some(segments) = self.changes.segments.get(number) else {
                continue;
            };
            let Some(partition) = self.partitions.get(number) else {
                continue;
            };
            if !notified.insert(*number) {
                continue;
            }
            let queue = partition.queue.names();
            if segments[0].first == 0 {
                // The partition's first message: pops of groups that have no cursor yet may wait.
                wakes.push(topic::wake_of_partition(queue, &partition.name, None, 1));
                continue;
            }
            for group in groups.remove(number).unwrap_or_default() {
                wakes.push(topic::wake_of_partition(
                    queue,
                    &partition.name,
                    Some(&group),
                    1,
                ));
            }
        }
        wakes
    }

    fn acknowledge(
        &mut self,
        batch: &WriteBatch,
        targets: &[Option<AckedMessage>],
    ) -> (Vec<AckOutcome>, Vec<Wake>) {
        let acks = &batch.acks;
        let mut outcomes = vec![AckOutcome::Unknown; acks.len()];
        let mut wakes = Vec::new();
        let mut by_cursor: BTreeMap<(i64, i64), Vec<IndexedAck<'_>>> = BTreeMap::new();
        for (index, (ack, target)) in acks.iter().zip(targets).enumerate() {
            match target {
                Some(target) => by_cursor
                    .entry((ack.partition, target.group))
                    .or_default()
                    .push(IndexedAck { index, ack, target }),
                None if ack.lease.is_some() => outcomes[index] = AckOutcome::LeaseLost,
                None => {}
            }
        }
        for (key, mut acks) in by_cursor {
            acks.sort_by_key(|acked| acked.target.position);
            let group = acks[0].ack.group.clone();
            let is_ready = self.apply_acks(key, &acks, batch, &mut outcomes);
            if is_ready && let Some(partition) = self.partitions.get(&key.0) {
                wakes.push(topic::wake_of_partition(
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

/// The position of the message with this transaction id, if it is an id that the server made.
#[must_use]
pub fn position_in_server_id(partition: i64, transaction_id: &str) -> Option<i64> {
    let (of, at) = id::partition_and_position(&transaction_id.parse().ok()?)?;
    (of == partition).then_some(at)
}
