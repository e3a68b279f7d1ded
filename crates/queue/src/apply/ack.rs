//! What acknowledgements do to a cursor.

use uuid::Uuid;

use super::{AckedMessage, BatchState, IndexedAck, Micros, NewMessageFlag};
use crate::{
    ack::{Ack, AckOutcome, AckStatus},
    deliveries::Deliveries,
    write_batch::WriteBatch,
};

/// How far a group has read a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next message to be consumed.
    pub position: i64,
    /// When the group can claim from the partition; nothing: there is nothing to claim.
    pub ready_us: Option<Micros>,
    pub lease: Option<Uuid>,
    pub leased_to: Option<i64>,
    /// The last lease that a nack ended. Loaded for acknowledgements only; claims leave it as it is.
    pub nacked_lease: Option<Uuid>,
    pub flags_end: i64,
    /// Earlier deliveries of the messages from here on.
    pub deliveries: Deliveries,
}

impl Cursor {
    #[must_use]
    pub fn is_leased(&self, now: Micros) -> bool {
        self.lease.is_some() && self.ready_us.is_some_and(|until| until > now)
    }
}

/// A flag beside a message: how often it failed for a group, and whether the group is not given it
/// any more. A deleted message is dead for all groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageFlag {
    pub failures: i32,
    pub is_dead: bool,
}

/// A queue's options about failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub limit: i32,
    pub delay_us: i64,
    /// Whether a message that fails too often is kept as a dead letter, or dropped.
    pub keeps_dead_letters: bool,
}

impl BatchState {
    /// Applies the acknowledgements of one call to one cursor, in the order of positions. Whether the
    /// group can claim from the partition again.
    ///
    /// If a message is redelivered, all messages after it are redelivered too. Every status but
    /// "completed" ends the lease.
    pub(super) fn apply_acks(
        &mut self,
        key: (i64, i64),
        acks: &[IndexedAck<'_>],
        batch: &WriteBatch,
        outcomes: &mut [AckOutcome],
    ) -> bool {
        let now = self.now;
        let Some(before) = self.cursors.get(&key).cloned() else {
            for acked in acks {
                outcomes[acked.index] = without_a_cursor(acked.ack);
            }
            return false;
        };
        let is_leased = before.is_leased(now);
        // Clients name the lease of a transaction's acknowledgements only among those required.
        let named = before.lease.filter(|lease| batch.required.contains(lease));
        let mut cursor = before.clone();
        let mut counted = Vec::new();
        let mut stays_at = None;
        let mut is_nacked = false;
        let mut is_held_back = false;
        let mut keeps_lease = false;
        for IndexedAck { index, ack, target } in acks {
            let lease = ack.lease.or(named);
            let at = match position(&before, is_leased, lease, ack.status, target) {
                Ok(at) => at,
                Err(outcome) => {
                    let is_released = outcome == AckOutcome::LeaseLost
                        && self.is_of_released_batch(key, &before, ack, target);
                    outcomes[*index] = match is_released {
                        true => AckOutcome::BatchReleased,
                        // A transaction under a lost lease is refused: its pushes were perhaps done
                        // before, or by the next holder of the lease.
                        false if batch.is_whole => outcome,
                        false => completed_before(&before, ack.status, target).unwrap_or(outcome),
                    };
                    continue;
                }
            };
            counted.push(*index);
            keeps_lease |= ack.keeps_lease;
            let mut kept = false;
            match ack.status {
                AckStatus::Completed if stays_at.is_none() => {
                    cursor.position = cursor.position.max(at + 1);
                }
                AckStatus::Completed => {}
                AckStatus::Retry => {
                    is_nacked = true;
                    stays_at.get_or_insert(at);
                }
                AckStatus::Failed | AckStatus::DeadLetter => {
                    is_nacked = true;
                    let is_dead;
                    (is_dead, kept) = self.fail(key, &mut cursor, ack, at, target.retry);
                    if !is_dead {
                        is_held_back |= target.retry.delay_us > 0;
                        stays_at.get_or_insert(at);
                    }
                }
            }
            outcomes[*index] = AckOutcome::Done {
                lease_released: false,
                dead: kept,
            };
        }
        if counted.is_empty() {
            return false;
        }
        // Dead messages that are next need no acknowledgement: a lease must not last because of them.
        while stays_at != Some(cursor.position) && self.is_dead(key, cursor.position) {
            cursor.position += 1;
        }

        let is_over = is_nacked
            || !is_leased
            || (!keeps_lease && cursor.leased_to.is_none_or(|end| cursor.position >= end));
        let mut is_ready = false;
        if is_over {
            // Skipping dead messages may move the cursor beyond what this transaction has locked. Then
            // we do not know whether more follows, so the cursor is made ready and the next claim
            // finds out.
            is_ready = self.end(key.0, acks) > cursor.position || !self.is_locked(key.0);
            let delay = acks.iter().map(|acked| acked.target.retry.delay_us).max();
            let delay = delay.filter(|_| is_held_back).unwrap_or_default();
            cursor.ready_us = is_ready.then_some(now.saturating_add(delay));
            if is_nacked
                && is_leased
                && let Some(lease) = cursor.lease
            {
                cursor.nacked_lease = Some(lease);
                self.changes.nacked_leases.insert(key, lease);
            }
            cursor.lease = None;
            if let Some(end) = cursor.leased_to.take() {
                cursor.deliveries.add(end, cursor.position);
            }
        }
        for index in counted {
            if let AckOutcome::Done { lease_released, .. } = &mut outcomes[index] {
                *lease_released = is_over && is_leased;
            }
        }
        if cursor.position > before.position && before.flags_end > before.position {
            self.changes.cursors_past_flags.insert(key);
        }
        if cursor != before {
            *self.changes.consumed_by_cursor.entry(key).or_default() +=
                cursor.position - before.position;
            self.cursors.insert(key, cursor);
        }
        is_ready
    }

    /// Records a failure. Whether the message is dead now, and whether it is kept as a dead letter.
    fn fail(
        &mut self,
        key: (i64, i64),
        cursor: &mut Cursor,
        ack: &Ack,
        at: i64,
        retry: RetryPolicy,
    ) -> (bool, bool) {
        let flag_key = (key.0, key.1, at);
        let mut flag = self.flags.get(&flag_key).copied().unwrap_or_default();
        if ack.status == AckStatus::Failed {
            flag.failures = flag.failures.saturating_add(1);
        }
        flag.is_dead |= ack.status == AckStatus::DeadLetter || flag.failures > retry.limit;
        self.flags.insert(flag_key, flag);
        cursor.flags_end = cursor.flags_end.max(at + 1);
        let is_kept =
            flag.is_dead && (retry.keeps_dead_letters || ack.status == AckStatus::DeadLetter);
        let new = NewMessageFlag {
            flag,
            is_kept,
            transaction_id: ack.transaction_id.clone(),
            error: ack.error.clone(),
        };
        self.changes.new_flags.insert(flag_key, new);
        (flag.is_dead, is_kept)
    }

    /// Whether a nack has released the batch of this acknowledgement, and the message is redelivered.
    fn is_of_released_batch(
        &self,
        key: (i64, i64),
        cursor: &Cursor,
        ack: &Ack,
        target: &AckedMessage,
    ) -> bool {
        let ahead = cursor.position..target.partition_end;
        let position = target.position.filter(|at| ahead.contains(at));
        ack.lease.is_some()
            && ack.lease == cursor.nacked_lease
            && position.is_some_and(|at| !self.is_dead(key, at))
    }

    fn is_dead(&self, key: (i64, i64), position: i64) -> bool {
        self.flags
            .get(&(key.0, key.1, position))
            .is_some_and(|flag| flag.is_dead)
    }

    fn is_locked(&self, partition: i64) -> bool {
        let row = self.partitions.get(&partition);
        row.is_some_and(|row| row.is_locked)
    }

    /// The end of the partition, as far as it is known.
    fn end(&self, partition: i64, acks: &[IndexedAck<'_>]) -> i64 {
        let acked = acks.iter().map(|acked| acked.target.partition_end).max();
        let locked = self.partitions.get(&partition).map(|row| row.next);
        acked.max(locked).unwrap_or_default()
    }
}

/// The position of the acknowledged message, if the caller may acknowledge it.
fn position(
    cursor: &Cursor,
    is_leased: bool,
    lease: Option<Uuid>,
    status: AckStatus,
    target: &AckedMessage,
) -> Result<i64, AckOutcome> {
    if lease.is_some() && !(is_leased && lease == cursor.lease) {
        return Err(AckOutcome::LeaseLost);
    }
    let at = target.position.filter(|at| *at < target.partition_end);
    let at = at.ok_or(AckOutcome::Unknown)?;
    if let Some(outcome) = completed_before(cursor, status, target) {
        return Err(outcome);
    }
    // The messages after the leased batch were not handed out to the caller.
    if lease.is_some() && cursor.leased_to.is_some_and(|end| at >= end) {
        return Err(AckOutcome::Unknown);
    }
    // A caller without the lease cannot end it.
    if lease.is_none() && is_leased && status != AckStatus::Completed {
        return Err(AckOutcome::LeaseLost);
    }
    Ok(at)
}

/// The outcome of an acknowledgement of a message that the group has completed, whoever sends it.
fn completed_before(
    cursor: &Cursor,
    status: AckStatus,
    target: &AckedMessage,
) -> Option<AckOutcome> {
    let position = target.position.filter(|at| *at < target.partition_end)?;
    (position < cursor.position).then_some(match status {
        AckStatus::Completed => AckOutcome::AlreadyDone,
        _ => AckOutcome::Passed,
    })
}

fn without_a_cursor(ack: &Ack) -> AckOutcome {
    if ack.lease.is_some() {
        AckOutcome::LeaseLost
    } else {
        AckOutcome::Unknown
    }
}
