//! What pushes do to a partition.

use std::collections::{HashMap, HashSet};

use super::{BatchState, Destinations, Micros, NewSegment, Partition};
use crate::{
    id,
    message::{NewMessage, PushReceipt, PushRefusal},
    seal::Fingerprint,
    segment::{MAX_BYTES, MAX_MESSAGES, SegmentBody},
    write_batch::WriteBatch,
};

impl BatchState {
    pub(super) fn push(
        &mut self,
        batch: &WriteBatch,
        destinations: &Destinations,
    ) -> Vec<Result<PushReceipt, PushRefusal>> {
        let messages = batch.pushes.iter();
        messages
            .zip(destinations)
            .map(|(message, destination)| {
                let number = destination.ok_or(PushRefusal::QueueDeleted)?;
                self.push_one(message, number, &batch.keys)
            })
            .collect()
    }

    fn push_one(
        &mut self,
        message: &NewMessage,
        number: i64,
        keys: &[Fingerprint],
    ) -> Result<PushReceipt, PushRefusal> {
        let partition = self
            .partitions
            .get(&number)
            .ok_or(PushRefusal::QueueDeleted)?;
        if self.push_paused {
            return Err(PushRefusal::Paused);
        }
        let hash = message.transaction_id.as_deref().map(id::hash);
        if let Some((position, created)) = self.duplicate(message, number, partition) {
            return Ok(pushed(message, number, position, created, true));
        }
        if let Some(refusal) = self.refusal(message, partition, keys, 0) {
            return Err(refusal);
        }
        let partition = self
            .partitions
            .get_mut(&number)
            .ok_or(PushRefusal::QueueDeleted)?;
        let position = partition.next;
        partition.next += 1;
        partition.last_us = partition.last_us.max(self.now);
        let created = partition.last_us;
        if partition.queue.max_size > 0 {
            *self.sizes.entry(partition.queue.id).or_default() += 1;
        }
        if let Some(hash) = hash {
            self.known_transactions
                .insert((number, hash), (position, created));
            self.changes.transactions.push((number, hash, position));
        }
        let segments = self.changes.segments.entry(number).or_default();
        append(segments, message, position);
        Ok(pushed(message, number, position, created, false))
    }

    /// The position and time of the message that has this transaction id already.
    fn duplicate(
        &self,
        message: &NewMessage,
        number: i64,
        partition: &Partition,
    ) -> Option<(i64, Micros)> {
        let transaction_id = message.transaction_id.as_deref()?;
        let known = self
            .known_transactions
            .get(&(number, id::hash(transaction_id)));
        // An id that the server made contains the message's position.
        known.copied().or_else(|| {
            let given: uuid::Uuid = transaction_id.parse().ok()?;
            let (of, position) = id::partition_and_position(&given)?;
            let created = i64::try_from(given.as_u128() >> 80)
                .ok()?
                .checked_mul(1_000)?;
            (of == number && position < partition.next).then_some((position, created))
        })
    }

    pub(super) fn refusal(
        &self,
        message: &NewMessage,
        partition: &Partition,
        keys: &[Fingerprint],
        added: i64,
    ) -> Option<PushRefusal> {
        let queue = &partition.queue;
        if self.push_paused {
            return Some(PushRefusal::Paused);
        }
        if queue.is_sealed && !message.is_sealed {
            return Some(PushRefusal::Unsealed);
        }
        if message.is_sealed
            && let Some(store) = self.key
            && !keys.contains(&store)
        {
            let server = keys.first().copied();
            return Some(PushRefusal::OtherKey { store, server });
        }
        let size = self.sizes.get(&queue.id).copied().unwrap_or_default() + added;
        (queue.max_size > 0 && size >= queue.max_size).then_some(PushRefusal::Full {
            max_size: queue.max_size,
        })
    }

    /// The first message that would be refused, counting the messages before it.
    pub(super) fn first_refusal(
        &self,
        batch: &WriteBatch,
        destinations: &Destinations,
    ) -> Option<(usize, PushRefusal)> {
        let mut added: HashMap<i64, i64> = HashMap::new();
        let mut seen = HashSet::new();
        for (index, (message, destination)) in batch.pushes.iter().zip(destinations).enumerate() {
            let Some((number, partition)) =
                destination.and_then(|number| Some((number, self.partitions.get(&number)?)))
            else {
                return Some((index, PushRefusal::QueueDeleted));
            };
            let is_again = message
                .transaction_id
                .as_ref()
                .is_some_and(|transaction_id| !seen.insert((number, transaction_id)));
            let is_known = || self.duplicate(message, number, partition).is_some();
            if !self.push_paused && (is_again || is_known()) {
                continue;
            }
            let added = added.entry(partition.queue.id).or_default();
            if let Some(refusal) = self.refusal(message, partition, &batch.keys, *added) {
                return Some((index, refusal));
            }
            *added += 1;
        }
        None
    }
}

fn pushed(
    message: &NewMessage,
    number: i64,
    position: i64,
    created: Micros,
    duplicate: bool,
) -> PushReceipt {
    let id = id::message(created, number, position);
    PushReceipt {
        id,
        transaction_id: message
            .transaction_id
            .clone()
            .unwrap_or_else(|| id.to_string()),
        partition_id: id::partition(number),
        duplicate,
    }
}

fn append(segments: &mut Vec<NewSegment>, message: &NewMessage, position: i64) {
    let has_room = segments.last().is_some_and(|segment| {
        let count = usize::try_from(segment.last - segment.first + 1).unwrap_or(usize::MAX);
        count < MAX_MESSAGES && segment.body.len() + message.payload.len() <= MAX_BYTES
    });
    if !has_room {
        segments.push(NewSegment {
            first: position,
            last: position,
            body: SegmentBody::default(),
        });
    }
    let segment = segments.last_mut().expect("one was just made");
    segment.body.add(message);
    segment.last = position;
}
