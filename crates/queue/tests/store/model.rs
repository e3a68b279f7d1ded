//! The rules of the door in memory, as simple as possible.

mod cursor;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::{Claim, PopRequest, Source},
    id,
    message::{NewMessage, PushReceipt},
    write_batch::Rejection,
};

use self::cursor::{Cursor, Lease, at};

/// Queue and partition.
pub(crate) type Name = (String, String);

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: Duration,
    partitions: BTreeMap<Name, Partition>,
    /// Queue and group.
    groups: BTreeSet<(String, String)>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    /// Learned from the first push.
    number: Option<i64>,
    /// Transaction ids.
    messages: Vec<String>,
    cursors: BTreeMap<String, Cursor>,
}

/// The outcomes of acknowledgements.
#[derive(Debug, Default)]
pub(crate) struct AckResults {
    pub(crate) outcomes: Vec<AckOutcome>,
    /// Where the group can claim again.
    pub(crate) ready: BTreeSet<(Name, String)>,
    /// Where that cannot be known: the cursor came to the end over dead messages, and a store that
    /// has not locked the partition does not check what follows them.
    pub(crate) perhaps: BTreeSet<(Name, String)>,
}

/// The queue that a pop claims from. The queues here are namespaces of their own.
fn queue_of(request: &PopRequest) -> String {
    match &request.source {
        Source::Queue { queue, .. } => queue.clone(),
        Source::Matching { namespace, .. } => namespace.clone().expect("a namespace"),
    }
}

/// An acknowledgement with where its partition and its message are.
type LocatedAck<'a> = (usize, &'a Ack, Option<usize>);

impl Model {
    /// Whether each message is new, given what the store says of their ids.
    pub(crate) fn push(&mut self, messages: &[NewMessage], pushed: &[PushReceipt]) -> Vec<bool> {
        let stored = messages.iter().zip(pushed).map(|(message, pushed)| {
            let name = (message.queue.clone(), message.partition.clone());
            self.make(&name);
            let partition = self.partitions.get_mut(&name).expect("it was made");
            let number = id::partition_number(&pushed.partition_id);
            assert_eq!(
                *partition.number.get_or_insert(number.unwrap()),
                number.unwrap()
            );
            let given = message.transaction_id.as_ref();
            assert!(given.is_none_or(|given| *given == pushed.transaction_id));
            let is_new = !partition.messages.contains(&pushed.transaction_id);
            if is_new {
                partition.messages.push(pushed.transaction_id.clone());
            }
            is_new
        });
        stored.collect()
    }

    /// A partition appears with its first push, also if that push is undone.
    pub(crate) fn make(&mut self, name: &Name) -> bool {
        if self.partitions.contains_key(name) {
            return false;
        }
        let mut partition = Partition::default();
        for (queue, group) in &self.groups {
            if *queue == name.0 {
                partition.cursors.insert(group.clone(), Cursor::default());
            }
        }
        self.partitions.insert(name.clone(), partition);
        true
    }

    fn of_request<'a>(
        &'a mut self,
        request: &'a PopRequest,
    ) -> impl Iterator<Item = (&'a Name, &'a mut Partition)> {
        self.partitions.iter_mut().filter(|((queue, name), _)| {
            let is_here = match &request.source {
                Source::Queue { partition, .. } => partition.as_ref().is_none_or(|p| p == name),
                Source::Matching { .. } => true,
            };
            *queue == queue_of(request) && is_here
        })
    }

    /// The partitions where a pop can have something.
    pub(crate) fn available(&mut self, request: &PopRequest) -> BTreeSet<String> {
        let now = self.now;
        self.of_request(request)
            .filter(|(_, partition)| {
                let cursor = partition.cursors.get(&request.group).cloned();
                let cursor = cursor.unwrap_or_default();
                !cursor.live(&partition.messages).is_empty() && !cursor.is_leased(now)
            })
            .map(|((_, name), _)| name.clone())
            .collect()
    }

    /// When the next lease ends.
    pub(crate) fn next_end(&mut self, request: &PopRequest) -> Option<Duration> {
        let now = self.now;
        self.of_request(request)
            .filter_map(|(_, partition)| partition.cursors.get(&request.group)?.lease.clone())
            .map(|lease| lease.until)
            .filter(|until| *until > now)
            .min()
    }

    pub(crate) fn is_known(&self, request: &PopRequest) -> bool {
        let queue = queue_of(request);
        self.groups.contains(&(queue, request.group.clone()))
    }

    /// A pop makes a queue that is there known to its group.
    pub(crate) fn meet(&mut self, request: &PopRequest) {
        let queue = queue_of(request);
        for ((of, _), partition) in &mut self.partitions {
            if *of == queue {
                self.groups.insert((queue.clone(), request.group.clone()));
                partition.cursors.entry(request.group.clone()).or_default();
            }
        }
    }

    pub(crate) fn claim(&mut self, request: &PopRequest, claimed: &Claim, lease: Duration) {
        let now = self.now;
        let mut room = request.batch as usize;
        assert!(claimed.parts.len() <= request.partitions as usize);
        for part in &claimed.parts {
            let name = (claimed.queue.clone(), part.partition.clone());
            let partition = self.partitions.get_mut(&name).expect("it is known");
            assert_eq!(partition.number, Some(part.number));
            let cursor = partition.cursors.entry(request.group.clone()).or_default();
            let fits = cursor.fits(&partition.messages, part, request.batch as usize, room);
            assert!(fits, "{part:?} of {cursor:?}");
            cursor.deliver(part, claimed.lease.is_none());
            room -= part.messages.len();
            let left = partition.messages.len() - at(part.end);
            if request.auto_ack {
                assert_eq!((claimed.lease, part.remaining as usize), (None, left));
                cursor.position = at(part.end);
                cursor.lease = None;
            } else {
                assert_eq!(part.remaining, 0);
                cursor.position = at(part.first);
                cursor.lease = Some(Lease {
                    id: claimed.lease.expect("a lease"),
                    until: now + request.lease_time.unwrap_or(lease),
                    end: at(part.end),
                });
            }
        }
    }

    fn by_number(&self, number: i64) -> Option<Name> {
        let mut all = self.partitions.iter();
        all.find(|(_, partition)| partition.number == Some(number))
            .map(|(name, _)| name.clone())
    }

    pub(crate) fn is_dead(&self, ack: &Ack) -> bool {
        self.by_number(ack.partition).is_some_and(|name| {
            let partition = &self.partitions[&name];
            let position = partition.position(&ack.transaction_id);
            let cursor = partition.cursors.get(&ack.group);
            cursor
                .zip(position)
                .is_some_and(|(cursor, position)| cursor.dead.contains_key(&position))
        })
    }

    /// Where the messages are: as it was before the step that acknowledges them.
    pub(crate) fn locate(&self, acks: &[Ack]) -> Vec<Option<usize>> {
        acks.iter()
            .map(|ack| {
                let name = self.by_number(ack.partition)?;
                self.partitions[&name].position(&ack.transaction_id)
            })
            .collect()
    }

    /// Why a step that is all or nothing is not done.
    pub(crate) fn rejection(&self, required: &[Uuid], acks: &[Ack]) -> Option<Rejection> {
        let lost = required.iter().find(|lease| !self.is_alive(**lease));
        if let Some(lease) = lost {
            return Some(Rejection::Lease(*lease));
        }
        let outcomes = self
            .clone()
            .ack(acks, required, &self.locate(acks), true)
            .outcomes;
        let index = outcomes.iter().position(|outcome| !outcome.is_success())?;
        Some(Rejection::Ack(index, outcomes[index]))
    }

    fn is_alive(&self, id: Uuid) -> bool {
        let mut cursors = self.partitions.values().flat_map(|p| p.cursors.values());
        cursors.any(|cursor| {
            let lease = cursor.lease.as_ref();
            lease.is_some_and(|lease| lease.id == id && lease.until > self.now)
        })
    }

    /// The acknowledgements of one call.
    pub(crate) fn ack(
        &mut self,
        acks: &[Ack],
        required: &[Uuid],
        located: &[Option<usize>],
        is_whole: bool,
    ) -> AckResults {
        let mut results = AckResults {
            outcomes: vec![AckOutcome::Unknown; acks.len()],
            ..AckResults::default()
        };
        let mut by_cursor: BTreeMap<(Name, String), Vec<LocatedAck<'_>>> = BTreeMap::new();
        for (index, (ack, position)) in acks.iter().zip(located).enumerate() {
            let name = self.by_number(ack.partition);
            let name = name.filter(|name| self.partitions[name].cursors.contains_key(&ack.group));
            match name {
                Some(name) => {
                    let acks = by_cursor.entry((name, ack.group.clone())).or_default();
                    acks.push((index, ack, *position));
                }
                None if ack.lease.is_some() => results.outcomes[index] = AckOutcome::LeaseLost,
                None => {}
            }
        }
        for (key, mut own) in by_cursor {
            own.sort_by_key(|(_, _, position)| *position);
            self.ack_one(key, &own, required, is_whole, &mut results);
        }
        results
    }

    fn ack_one(
        &mut self,
        key: (Name, String),
        own: &[LocatedAck<'_>],
        required: &[Uuid],
        is_whole: bool,
        results: &mut AckResults,
    ) {
        let now = self.now;
        let partition = self.partitions.get_mut(&key.0).expect("it is known");
        let cursor = partition.cursors.get_mut(&key.1).expect("it is known");
        let is_leased = cursor.is_leased(now);
        let before = cursor.clone();
        let (mut counted, mut stays, mut is_nacked, mut keeps) = (Vec::new(), None, false, false);
        for &(index, ack, position) in own {
            if let Some(refusal) = before.refusal(now, ack, required, is_whole, position) {
                // A message that this call made a dead letter is not redelivered.
                let is_dead = position.is_some_and(|at| cursor.dead.contains_key(&at));
                let is_released = refusal == AckOutcome::LeaseLost
                    && !is_dead
                    && before.is_of_released_batch(ack, position);
                results.outcomes[index] = match is_released {
                    true => AckOutcome::BatchReleased,
                    false => refusal,
                };
                continue;
            }
            let position = position.expect("an ack without one is refused");
            let mut dead = false;
            match ack.status {
                AckStatus::Completed if stays.is_none() => {
                    cursor.position = cursor.position.max(position + 1);
                }
                AckStatus::Completed => {}
                AckStatus::Retry => {
                    stays.get_or_insert(position);
                }
                status => {
                    dead = cursor.fail(position, status);
                    if !dead {
                        stays.get_or_insert(position);
                    }
                }
            }
            is_nacked |= ack.status != AckStatus::Completed;
            keeps |= ack.keeps_lease;
            counted.push((index, dead, position));
        }
        let Some(last) = counted.iter().map(|(_, _, position)| *position).max() else {
            return;
        };
        // A message that failed twice and died in the same call is passed by the next claim.
        while stays != Some(cursor.position) && cursor.dead.contains_key(&cursor.position) {
            cursor.position += 1;
        }
        let end = cursor.lease.as_ref().map_or(0, |lease| lease.end);
        let is_over = is_nacked || !is_leased || (!keeps && cursor.position >= end);
        if is_over {
            let lease = cursor.lease.take();
            if is_nacked && is_leased {
                cursor.nacked = lease.map(|lease| lease.id);
            }
            if cursor.position < partition.messages.len() {
                results.ready.insert(key);
            } else if cursor.position > last + 1 {
                results.perhaps.insert(key);
            }
        }
        for (index, dead, _) in counted {
            results.outcomes[index] = AckOutcome::Done {
                lease_released: is_over && is_leased,
                dead,
            };
        }
    }

    /// In how many partitions, and until when.
    pub(crate) fn extend(&mut self, id: Uuid, time: Duration) -> Option<(usize, Duration)> {
        let now = self.now;
        let cursors = self
            .partitions
            .values_mut()
            .flat_map(|p| p.cursors.values_mut());
        let leases = cursors.filter_map(|cursor| cursor.lease.as_mut());
        let mut ends = Vec::new();
        for lease in leases.filter(|lease| lease.id == id && lease.until > now) {
            lease.until = lease.until.max(now + time);
            ends.push(lease.until);
        }
        ends.iter().max().map(|until| (ends.len(), *until))
    }

    /// The partitions where the claim can be given back; `None` where the rules leave it open
    /// (dead messages follow, and whether the store has passed them cannot be seen).
    pub(crate) fn release_claim(&mut self, claimed: &Claim) -> Option<Vec<i64>> {
        let mut after = self.clone();
        let mut returned = Vec::new();
        for part in &claimed.parts {
            let name = (claimed.queue.clone(), part.partition.clone());
            let partition = after.partitions.get_mut(&name)?;
            let cursor = partition.cursors.get_mut(&claimed.group)?;
            if claimed.lease.is_none() && cursor.dead.contains_key(&cursor.position) {
                return None;
            }
            let is_own = match (claimed.lease, &cursor.lease) {
                (None, None) => cursor.position == at(part.end),
                (Some(own), Some(lease)) => own == lease.id && cursor.position == at(part.first),
                _ => false,
            };
            if is_own {
                cursor.forget_delivery(part, claimed.lease.is_none());
                cursor.position = at(part.first);
                cursor.lease = None;
                returned.push(part.number);
            }
        }
        *self = after;
        returned.sort_unstable();
        Some(returned)
    }

    /// Position and failures of every dead letter, sorted.
    pub(crate) fn dead_letters(&self) -> Vec<(i64, i64)> {
        let cursors = self.partitions.values().flat_map(|p| p.cursors.values());
        let dead = cursors.flat_map(|cursor| &cursor.dead);
        let mut dead: Vec<_> = dead
            .map(|(position, failures)| (i64::try_from(*position).unwrap(), *failures))
            .collect();
        dead.sort_unstable();
        dead
    }

    pub(crate) fn messages(&self) -> BTreeMap<Name, Vec<String>> {
        let all = self
            .partitions
            .iter()
            .filter(|(_, p)| !p.messages.is_empty());
        all.map(|(name, partition)| (name.clone(), partition.messages.clone()))
            .collect()
    }
}

impl Partition {
    fn position(&self, transaction_id: &str) -> Option<usize> {
        self.messages.iter().position(|name| name == transaction_id)
    }
}
