//! Whom a write makes ready: the same on both databases.
//!
//! Direct wakes where the write knows the names. Where it can free partitions that it does not
//! name, the whole door rechecks: these writes are rare, and a recheck is one statement.

use wakeline_bus::Wakes;

use super::browse::Retry;
use crate::{
    browse::Retried,
    claim::{Claimed, Popped},
    manage::{Configured, Modes},
    step::Done,
};

/// What no pop waits for.
pub(super) fn none<T>(_: &T) -> Wakes {
    Wakes::none()
}

/// A group that is moved or deleted has other messages ahead of it, in partitions of any queue.
pub(super) fn whole_door<T>(_: &T) -> Wakes {
    Wakes::whole_door()
}

pub(super) fn of_step(done: &Done) -> Wakes {
    done.ready.clone().into()
}

/// What an auto-acknowledged claim leaves in its partitions is for the next pop.
pub(super) fn of_pop(popped: &Popped) -> Wakes {
    match popped {
        Popped::Claimed(claimed) => claimed.ready().into(),
        Popped::Empty { .. } => Wakes::none(),
    }
}

/// `returned` are the numbers of the partitions that are free again.
pub(super) fn of_hand_back(claimed: &Claimed, returned: &[i64]) -> Wakes {
    let free = claimed.parts.iter();
    let free = free.filter(|part| returned.contains(&part.number));
    let wakes: Vec<_> = free.map(|part| claimed.wake(part, 1)).collect();
    wakes.into()
}

pub(super) fn of_configure(configured: &Configured) -> Wakes {
    if configured.may_be_ready {
        Wakes::whole_door()
    } else {
        Wakes::none()
    }
}

/// Pops that were held during a pause look again after it.
pub(super) fn of_pop_pause(modes: &Modes) -> Wakes {
    if modes.pop_paused {
        Wakes::none()
    } else {
        Wakes::whole_door()
    }
}

pub(super) fn of_retry(retry: &Retry, retried: &Retried) -> Wakes {
    match retried {
        Retried::Done { .. } => retry.wake.clone().into(),
        Retried::Gone | Retried::NoGroup => Wakes::none(),
    }
}

/// Without the message that a partition was held back for, what follows it can be claimed.
pub(super) fn of_removal(is_removed: bool) -> Wakes {
    if is_removed {
        Wakes::whole_door()
    } else {
        Wakes::none()
    }
}
