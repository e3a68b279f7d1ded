//! How far a group has read a partition.

use std::{collections::BTreeMap, time::Duration};

use uuid::Uuid;
use wakeline_queue::{
    ack::{Ack, AckOutcome, AckStatus},
    claim::ClaimedPartition,
};

const RETRIES: i64 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// The store may be farther, if there are only dead ones between.
    pub(super) position: usize,
    pub(super) lease: Option<Lease>,
    /// The last lease that a nack ended.
    pub(super) nacked: Option<Uuid>,
    pub(super) failures: BTreeMap<usize, i64>,
    pub(super) dead: BTreeMap<usize, i64>,
}

#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) id: Uuid,
    pub(super) until: Duration,
    pub(super) end: usize,
}

pub(super) fn at(position: i64) -> usize {
    usize::try_from(position).expect("no position is negative")
}

impl Cursor {
    pub(super) fn is_leased(&self, now: Duration) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until > now)
    }

    /// The positions that are still to come.
    pub(super) fn live(&self, messages: &[String]) -> Vec<usize> {
        (self.position..messages.len())
            .filter(|position| !self.dead.contains_key(position))
            .collect()
    }

    pub(super) fn refusal(
        &self,
        now: Duration,
        ack: &Ack,
        required: &[Uuid],
        position: Option<usize>,
    ) -> Option<AckOutcome> {
        let is_leased = self.is_leased(now);
        let lease = self.lease.as_ref().filter(|_| is_leased);
        // A lease that the step requires need not be said again.
        let required = lease
            .map(|lease| lease.id)
            .filter(|id| required.contains(id));
        let said = ack.lease.or(required);
        if said.is_some() && said != lease.map(|lease| lease.id) {
            return Some(AckOutcome::LeaseLost);
        }
        let Some(position) = position else {
            return Some(AckOutcome::Unknown);
        };
        let is_completed = ack.status == AckStatus::Completed;
        if position < self.position {
            return Some(match is_completed {
                true => AckOutcome::AlreadyDone,
                false => AckOutcome::Passed,
            });
        }
        if said.is_some() && lease.is_some_and(|lease| position >= lease.end) {
            return Some(AckOutcome::Unknown);
        }
        if said.is_none() && is_leased && !is_completed {
            return Some(AckOutcome::LeaseLost);
        }
        None
    }

    /// Whether a nack has released the batch of this acknowledgement, and the message is still ahead.
    pub(super) fn is_of_released_batch(&self, ack: &Ack, position: Option<usize>) -> bool {
        ack.lease.is_some()
            && ack.lease == self.nacked
            && position.is_some_and(|at| at >= self.position)
    }

    /// Whether it is dead now.
    pub(super) fn fail(&mut self, position: usize, status: AckStatus) -> bool {
        let failures = self.failures.entry(position).or_default();
        if status == AckStatus::Failed {
            *failures += 1;
        }
        let is_dead = status == AckStatus::DeadLetter
            || *failures > RETRIES
            || self.dead.contains_key(&position);
        if is_dead {
            self.dead.insert(position, *failures);
        }
        is_dead
    }

    /// Whether a claim of `batch` with room for `room` may take this: what is next, without a gap,
    /// and all of it as far as `batch` places reach.
    pub(super) fn fits(
        &self,
        messages: &[String],
        part: &ClaimedPartition,
        batch: usize,
        room: usize,
    ) -> bool {
        let live = self.live(messages);
        let within = |from: usize| live.iter().filter(|at| **at < from + batch).count();
        let least = within(self.position).min(room).max(1);
        let most = live.first().map_or(0, |first| within(*first)).min(room);
        let count = part.messages.len();
        let taken: Vec<(usize, &str)> = part
            .messages
            .iter()
            .map(|message| (at(message.position), &*message.transaction_id))
            .collect();
        let next: Vec<(usize, &str)> = live
            .iter()
            .take(count)
            .map(|position| (*position, &*messages[*position]))
            .collect();
        let end = at(part.end);
        let is_gapless = live.get(count).is_none_or(|next| end <= *next);
        (least..=most).contains(&count)
            && taken == next
            && at(part.first) == next[0].0
            && end > next[count - 1].0
            && end <= messages.len()
            && is_gapless
    }
}
