//! The rules of the door in memory, as plainly as they can be said.

use std::{collections::BTreeMap, time::Duration};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, Outcome, Status},
    claim::{Claimed, PopRequest},
};

const RETRIES: i64 = 3;

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: Duration,
    partitions: BTreeMap<(String, String), Partition>,
}

#[derive(Debug, Default)]
struct Partition {
    /// Learned from the first claim.
    id: Option<Uuid>,
    messages: Vec<String>,
    cursors: BTreeMap<String, Cursor>,
}

#[derive(Clone, Debug, Default)]
struct Cursor {
    position: usize,
    lease: Option<Lease>,
    failures: BTreeMap<usize, i64>,
    dead: BTreeMap<usize, i64>,
}

#[derive(Clone, Debug)]
struct Lease {
    id: Uuid,
    until: Duration,
    end: usize,
}

impl Cursor {
    fn is_leased(&self, now: Duration) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until > now)
    }

    /// The positions that are still to come.
    fn live(&self, messages: &[String]) -> Vec<usize> {
        (self.position..messages.len())
            .filter(|position| !self.dead.contains_key(position))
            .collect()
    }
}

impl Model {
    /// Whether each message is new.
    pub(crate) fn push(&mut self, messages: &[(String, String, String)]) -> Vec<bool> {
        let stored = messages.iter().map(|(queue, partition, transaction)| {
            let key = (queue.clone(), partition.clone());
            let partition = self.partitions.entry(key).or_default();
            let is_new = !partition.messages.contains(transaction);
            if is_new {
                partition.messages.push(transaction.clone());
            }
            is_new
        });
        stored.collect()
    }

    fn of_request<'a>(
        &'a mut self,
        request: &'a PopRequest,
    ) -> impl Iterator<Item = (&'a str, &'a mut Partition)> {
        self.partitions
            .iter_mut()
            .filter(|((queue, name), _)| {
                *queue == request.queue
                    && request.partition.as_ref().is_none_or(|only| only == name)
            })
            .map(|((_, name), partition)| (&**name, partition))
    }

    /// Per partition what a pop would get: transactions.
    pub(crate) fn available(&mut self, request: &PopRequest) -> BTreeMap<String, Vec<String>> {
        let now = self.now;
        self.of_request(request)
            .filter_map(|(name, partition)| {
                let cursor = partition.cursors.get(&request.group).cloned();
                let cursor = cursor.unwrap_or_default();
                let live = cursor.live(&partition.messages);
                if live.is_empty() || cursor.is_leased(now) {
                    return None;
                }
                let batch = live.iter().take(request.batch as usize);
                let names = batch.map(|position| partition.messages[*position].clone());
                Some((name.to_owned(), names.collect()))
            })
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

    /// A pop makes the partitions it asks for known to its group.
    pub(crate) fn meet(&mut self, request: &PopRequest) {
        for (_, partition) in self.of_request(request) {
            partition.cursors.entry(request.group.clone()).or_default();
        }
    }

    pub(crate) fn claim(&mut self, request: &PopRequest, claimed: &Claimed, lease: Duration) {
        let now = self.now;
        let key = (claimed.queue.clone(), claimed.partition.clone());
        let partition = self.partitions.get_mut(&key).expect("it is known");
        let id = partition.id.get_or_insert(claimed.partition_id);
        assert_eq!(*id, claimed.partition_id);
        let cursor = partition.cursors.entry(request.group.clone()).or_default();
        let live = cursor.live(&partition.messages);
        let end = live[claimed.messages.len() - 1] + 1;
        assert_eq!(claimed.end, i64::try_from(end).unwrap());
        let left = partition.messages.len() - end;
        if request.auto_ack {
            assert_eq!((claimed.lease, claimed.remaining as usize), (None, left));
            cursor.position = end;
            cursor.lease = None;
        } else {
            assert_eq!(claimed.remaining, 0);
            cursor.lease = Some(Lease {
                id: claimed.lease.expect("a lease"),
                until: now + lease,
                end,
            });
        }
    }

    fn by_id(&mut self, id: Uuid) -> Option<&mut Partition> {
        let mut all = self.partitions.values_mut();
        all.find(|partition| partition.id == Some(id))
    }

    pub(crate) fn is_dead(&mut self, ack: &Ack) -> bool {
        self.by_id(ack.partition_id).is_some_and(|partition| {
            let position = partition
                .messages
                .iter()
                .position(|name| *name == ack.transaction_id);
            let cursor = partition.cursors.get(&ack.group);
            cursor
                .zip(position)
                .is_some_and(|(cursor, position)| cursor.dead.contains_key(&position))
        })
    }

    /// What comes of it, and whether the group can claim from the partition (again).
    pub(crate) fn ack(&mut self, ack: &Ack) -> (Outcome, bool) {
        let now = self.now;
        let partition = self.by_id(ack.partition_id);
        let known = partition.and_then(|partition| {
            let cursor = partition.cursors.get_mut(&ack.group)?;
            Some((&partition.messages, cursor))
        });
        let Some((messages, cursor)) = known else {
            let fenced = ack.lease.is_some();
            return match fenced {
                true => (Outcome::LeaseLost, false),
                false => (Outcome::Unknown, false),
            };
        };
        let is_leased = cursor.is_leased(now);
        let held = cursor.lease.as_ref().map(|lease| lease.id);
        if ack.lease.is_some() && (!is_leased || ack.lease != held) {
            return (Outcome::LeaseLost, false);
        }
        let Some(position) = messages.iter().position(|name| *name == ack.transaction_id) else {
            return (Outcome::Unknown, false);
        };
        if position < cursor.position {
            return match ack.status {
                Status::Completed => (Outcome::AlreadyDone, false),
                _ => (Outcome::Passed, false),
            };
        }
        let failures = cursor.failures.entry(position).or_default();
        let dead = match ack.status {
            Status::Completed | Status::Retry => false,
            Status::DeadLetter => true,
            Status::Failed => {
                *failures += 1;
                *failures > RETRIES
            }
        };
        if dead {
            cursor.dead.entry(position).or_insert(*failures);
        }
        if ack.status == Status::Completed || (dead && position == cursor.position) {
            cursor.position = position + 1;
            while cursor.dead.contains_key(&cursor.position) {
                cursor.position += 1;
            }
            cursor.failures = cursor.failures.split_off(&cursor.position);
        }
        let comes_again = matches!(ack.status, Status::Failed | Status::Retry) && !dead;
        let is_at_end = cursor
            .lease
            .as_ref()
            .is_none_or(|lease| cursor.position >= lease.end);
        let is_over = comes_again || is_at_end || !is_leased;
        if is_over {
            cursor.lease = None;
        }
        let done = Outcome::Done {
            lease_released: is_over && is_leased,
            dead,
        };
        (done, is_over && messages.len() > cursor.position)
    }

    /// Whether the claim can be given back; `None` where the rules leave it open (only dead
    /// messages follow, and whether the store has tidied them away cannot be seen).
    pub(crate) fn hand_back(&mut self, claimed: &Claimed) -> Option<bool> {
        let partition = self.by_id(claimed.partition_id)?;
        let messages = partition.messages.clone();
        let cursor = partition.cursors.get_mut(&claimed.group)?;
        if claimed.lease.is_none() && cursor.live(&messages).is_empty() {
            let has_dead = messages.len() > cursor.position;
            if has_dead {
                return None;
            }
        }
        let at = |position: i64| i64::try_from(cursor.position) == Ok(position);
        let is_own = match (claimed.lease, &cursor.lease) {
            (None, None) => at(claimed.end),
            (Some(own), Some(lease)) => own == lease.id && at(claimed.first),
            _ => false,
        };
        if is_own {
            cursor.position = usize::try_from(claimed.first).unwrap();
            cursor.lease = None;
        }
        Some(is_own)
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

    pub(crate) fn messages(&self) -> BTreeMap<(String, String), Vec<String>> {
        let all = self.partitions.iter();
        all.map(|(key, partition)| (key.clone(), partition.messages.clone()))
            .collect()
    }
}
