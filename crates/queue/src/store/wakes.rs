//! Which waiters a write wakes: the same on both databases.
//!
//! A write that knows the queues and groups it made ready wakes their waiters. A write that can free
//! partitions that it does not name makes the whole door recheck: such writes are rare, and a recheck
//! is one statement.

use wakeline_bus::Wakes;

use crate::{
    browse::{DeadLetterRetry, RetryOutcome},
    claim::{Claim, PopOutcome},
    queue_admin::{ConfigureResult, PauseModes},
    write_batch::BatchOutcome,
};

/// No pop waits for such a write.
pub(super) fn none<T>(_: &T) -> Wakes {
    Wakes::none()
}

/// For a group that is moved or deleted: it has other messages ahead, in partitions of any queue.
pub(super) fn whole_door<T>(_: &T) -> Wakes {
    Wakes::whole_door()
}

pub(super) fn of_write_batch(done: &BatchOutcome) -> Wakes {
    done.wakes.clone().into()
}

/// Messages that an auto-acknowledged claim leaves in its partitions are for the next pop.
pub(super) fn of_pop(popped: &PopOutcome) -> Wakes {
    match popped {
        PopOutcome::Claimed(claimed) => claimed.wakes().into(),
        PopOutcome::Empty { .. } => Wakes::none(),
    }
}

/// `released` are the numbers of the partitions that are free again.
pub(super) fn of_release(claim: &Claim, released: &[i64]) -> Wakes {
    let free = claim.parts.iter();
    let free = free.filter(|part| released.contains(&part.number));
    let wakes: Vec<_> = free.map(|part| claim.wake(part, 1)).collect();
    wakes.into()
}

pub(super) fn of_configure(configured: &Option<ConfigureResult>) -> Wakes {
    if configured.as_ref().is_some_and(|queue| queue.may_be_ready) {
        Wakes::whole_door()
    } else {
        Wakes::none()
    }
}

/// Pops that were held during a pause check the store after it.
pub(super) fn of_pop_pause(modes: &PauseModes) -> Wakes {
    if modes.pop_paused {
        Wakes::none()
    } else {
        Wakes::whole_door()
    }
}

pub(super) fn of_retry(retry: &DeadLetterRetry, retried: &RetryOutcome) -> Wakes {
    match retried {
        RetryOutcome::Done { .. } => retry.wake.clone().into(),
        RetryOutcome::Gone | RetryOutcome::NoGroup => Wakes::none(),
    }
}

/// Without the message that its partition waited for, the messages after it can be claimed.
pub(super) fn of_removal(is_removed: bool) -> Wakes {
    if is_removed {
        Wakes::whole_door()
    } else {
        Wakes::none()
    }
}
