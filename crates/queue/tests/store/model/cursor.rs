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
    /// The store's cursor may be farther, if only dead messages are between.
    pub(super) position: usize,
    pub(super) lease: Option<Lease>,
    /// The last lease that a nack ended.
    pub(super) nacked: Option<Uuid>,
    pub(super) failures: BTreeMap<usize, i64>,
    pub(super) dead: BTreeMap<usize, i64>,
    /// How often each message was delivered.
    delivered: BTreeMap<usize, usize>,
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
        is_whole: bool,
        position: Option<usize>,
    ) -> Option<AckOutcome> {
        let is_leased = self.is_leased(now);
        let lease = self.lease.as_ref().filter(|_| is_leased);
        // A lease that the write requires need not be sent again.
        let required = lease
            .map(|lease| lease.id)
            .filter(|id| required.contains(id));
        let said = ack.lease.or(required);
        let is_completed = ack.status == AckStatus::Completed;
        let passed = position.filter(|at| *at < self.position);
        let passed = passed.map(|_| match is_completed {
            true => AckOutcome::AlreadyDone,
            false => AckOutcome::Passed,
        });
        if said.is_some() && said != lease.map(|lease| lease.id) {
            let passed = passed.filter(|_| !is_whole);
            return Some(passed.unwrap_or(AckOutcome::LeaseLost));
        }
        let Some(position) = position else {
            return Some(AckOutcome::Unknown);
        };
        if passed.is_some() {
            return passed;
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

    /// The messages of a claim tell how often they were delivered before. Those of an auto-ack are
    /// consumed: should it be released, they have no deliveries of their own any more.
    pub(super) fn deliver(&mut self, part: &ClaimedPartition, is_auto_ack: bool) {
        for message in &part.messages {
            let before = self.delivered.get(&at(message.position));
            let attempt = part.deliveries.attempt(message.position);
            assert_eq!(attempt, 1 + before.copied().unwrap_or_default(), "{part:?}");
        }
        let end = at(part.end);
        let left = self.delivered.get(&end).copied().unwrap_or_default();
        for position in self.position..end {
            let delivered = self.delivered.entry(position).or_default();
            *delivered = if is_auto_ack { left } else { *delivered + 1 };
        }
    }

    /// The claim is released. Messages of an auto-ack then count with those behind them, which may have
    /// been delivered meanwhile.
    pub(super) fn forget_delivery(&mut self, part: &ClaimedPartition, is_auto_ack: bool) {
        let (first, end) = (at(part.first), at(part.end));
        let behind = self.delivered.get(&end).copied().unwrap_or_default();
        for position in first..end {
            let delivered = self.delivered.entry(position).or_default();
            *delivered = if is_auto_ack { behind } else { *delivered - 1 };
        }
    }

    /// Returns whether the message is a dead letter now.
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
