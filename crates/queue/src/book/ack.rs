//! What acknowledgements do to a cursor.

use uuid::Uuid;

use super::{Book, Micros, NewMark, Said, Target};
use crate::ack::{Ack, Outcome, Status};

/// How far a group has read a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next message to be consumed.
    pub position: i64,
    /// When it can be claimed; see the tables.
    pub ready_us: Option<Micros>,
    pub lease: Option<Uuid>,
    pub leased_to: Option<i64>,
    pub marked_to: i64,
}

impl Cursor {
    #[must_use]
    pub fn is_leased(&self, now: Micros) -> bool {
        self.lease.is_some() && self.ready_us.is_some_and(|until| until > now)
    }
}

/// What is special about a message for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub failures: i32,
    pub is_dead: bool,
}

/// What a queue says about failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub limit: i32,
    pub delay_us: i64,
    /// What fails too often is kept as a dead letter, or dropped.
    pub keeps_dead: bool,
}

impl Book {
    /// All that one call says to one cursor, in the order of positions. Whether the group can
    /// claim from the partition again.
    ///
    /// A message that comes again is never passed by a later one of the same call: what follows it
    /// comes again too. Any answer but "completed" ends the lease.
    pub(super) fn settle(
        &mut self,
        key: (i64, i64),
        said: &[Said<'_>],
        required: &[Uuid],
        outcomes: &mut [Outcome],
    ) -> bool {
        let now = self.now;
        let Some(before) = self.cursors.get(&key).cloned() else {
            for (index, ack, _) in said {
                outcomes[*index] = without_a_cursor(ack);
            }
            return false;
        };
        let is_leased = before.is_leased(now);
        // Clients name the lease of a transaction's acknowledgements only among those required.
        let named = before.lease.filter(|lease| required.contains(lease));
        let mut cursor = before.clone();
        let mut counted = Vec::new();
        let mut stays_at = None;
        let mut is_nacked = false;
        let mut is_held_back = false;
        let mut keeps_lease = false;
        for (index, ack, target) in said {
            let lease = ack.lease.or(named);
            let at = match position(&before, is_leased, lease, ack.status, target) {
                Ok(at) => at,
                Err(outcome) => {
                    outcomes[*index] = outcome;
                    continue;
                }
            };
            counted.push(*index);
            keeps_lease |= ack.keeps_lease;
            let mut kept = false;
            match ack.status {
                Status::Completed if stays_at.is_none() => {
                    cursor.position = cursor.position.max(at + 1);
                }
                Status::Completed => {}
                Status::Retry => {
                    is_nacked = true;
                    stays_at.get_or_insert(at);
                }
                Status::Failed | Status::DeadLetter => {
                    is_nacked = true;
                    let is_dead;
                    (is_dead, kept) = self.fail(key, &mut cursor, ack, at, target.retry);
                    if !is_dead {
                        is_held_back |= target.retry.delay_us > 0;
                        stays_at.get_or_insert(at);
                    }
                }
            }
            outcomes[*index] = Outcome::Done {
                lease_released: false,
                dead: kept,
            };
        }
        if counted.is_empty() {
            return false;
        }
        // Dead ones that are next are answered for: a lease must not last for their sake.
        while stays_at != Some(cursor.position) && self.is_dead(key, cursor.position) {
            cursor.position += 1;
        }

        let is_over = is_nacked
            || !is_leased
            || (!keeps_lease && cursor.leased_to.is_none_or(|end| cursor.position >= end));
        let mut is_ready = false;
        if is_over {
            // Only dead ones lead farther than to the end of what is locked. Whether there is more
            // behind them is then for the next claim to find out.
            is_ready = self.end(key.0, said) > cursor.position || !self.is_locked(key.0);
            let delay = said
                .iter()
                .map(|(_, _, target)| target.retry.delay_us)
                .max();
            let delay = delay.filter(|_| is_held_back).unwrap_or_default();
            cursor.ready_us = is_ready.then_some(now.saturating_add(delay));
            cursor.lease = None;
            cursor.leased_to = None;
        }
        for index in counted {
            if let Outcome::Done { lease_released, .. } = &mut outcomes[index] {
                *lease_released = is_over && is_leased;
            }
        }
        if cursor.position > before.position && before.marked_to > before.position {
            self.changes.forgotten.insert(key);
        }
        if cursor != before {
            *self.changes.moved.entry(key).or_default() += cursor.position - before.position;
            self.cursors.insert(key, cursor);
        }
        is_ready
    }

    /// Counts a failure. Whether the message is dead now, and whether it is kept as a dead letter.
    fn fail(
        &mut self,
        key: (i64, i64),
        cursor: &mut Cursor,
        ack: &Ack,
        at: i64,
        retry: Retry,
    ) -> (bool, bool) {
        let place = (key.0, key.1, at);
        let mut mark = self.marks.get(&place).copied().unwrap_or_default();
        if ack.status == Status::Failed {
            mark.failures = mark.failures.saturating_add(1);
        }
        mark.is_dead |= ack.status == Status::DeadLetter || mark.failures > retry.limit;
        self.marks.insert(place, mark);
        cursor.marked_to = cursor.marked_to.max(at + 1);
        let is_kept = mark.is_dead && (retry.keeps_dead || ack.status == Status::DeadLetter);
        let new = NewMark {
            mark,
            is_kept,
            transaction_id: ack.transaction_id.clone(),
            error: ack.error.clone(),
        };
        self.changes.marked.insert(place, new);
        (mark.is_dead, is_kept)
    }

    fn is_dead(&self, key: (i64, i64), position: i64) -> bool {
        self.marks
            .get(&(key.0, key.1, position))
            .is_some_and(|mark| mark.is_dead)
    }

    fn is_locked(&self, partition: i64) -> bool {
        let row = self.partitions.get(&partition);
        row.is_some_and(|row| row.is_locked)
    }

    /// Where the partition ends, as far as it is known.
    fn end(&self, partition: i64, said: &[Said<'_>]) -> i64 {
        let seen = said.iter().map(|(_, _, target)| target.next).max();
        let locked = self.partitions.get(&partition).map(|row| row.next);
        seen.max(locked).unwrap_or_default()
    }
}

/// Where the acknowledged message is, if the caller may speak of it.
fn position(
    cursor: &Cursor,
    is_leased: bool,
    lease: Option<Uuid>,
    status: Status,
    target: &Target,
) -> Result<i64, Outcome> {
    if lease.is_some() && !(is_leased && lease == cursor.lease) {
        return Err(Outcome::LeaseLost);
    }
    let at = target.at.filter(|at| *at < target.next);
    let at = at.ok_or(Outcome::Unknown)?;
    let is_completed = status == Status::Completed;
    if at < cursor.position {
        return Err(if is_completed {
            Outcome::AlreadyDone
        } else {
            Outcome::Passed
        });
    }
    // Behind the batch there are messages that nobody was given.
    if lease.is_some() && cursor.leased_to.is_some_and(|end| at >= end) {
        return Err(Outcome::Unknown);
    }
    // Who has no lease cannot end somebody else's.
    if lease.is_none() && is_leased && !is_completed {
        return Err(Outcome::LeaseLost);
    }
    Ok(at)
}

fn without_a_cursor(ack: &Ack) -> Outcome {
    if ack.lease.is_some() {
        Outcome::LeaseLost
    } else {
        Outcome::Unknown
    }
}
