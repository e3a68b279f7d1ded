//! Remembers empty fetches: a dispatcher that returns after its poll timeout need not ask the
//! database again while no wake has been published since.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Kinds of dispatchers that are remembered; a process seldom has more than a handful.
const MAX_KINDS: usize = 1_024;

/// Counters that change whenever a dispatcher has a reason to ask the database again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WakeCounters {
    /// Wakes of the door.
    pub(crate) published: u64,
    /// Requests to recheck all waiters.
    pub(crate) rechecks: u64,
}

/// When the next item is due; none if no item is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NextDue {
    pub(crate) at: Option<Instant>,
}

impl NextDue {
    pub(crate) fn after(self) -> Option<Duration> {
        self.at
            .map(|at| at.saturating_duration_since(Instant::now()))
    }
}

#[derive(Debug, Default)]
pub(crate) struct EmptyPolls {
    by_kind: Mutex<HashMap<String, (WakeCounters, NextDue)>>,
}

impl EmptyPolls {
    /// If the last fetch of this kind was empty and nothing has changed since: when the next item is
    /// due.
    pub(crate) fn still_empty(&self, kind: &str, counters: WakeCounters) -> Option<NextDue> {
        let by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        let (at_fetch, next) = by_kind.get(kind)?;
        let is_due = next.at.is_some_and(|at| at <= Instant::now());
        (*at_fetch == counters && !is_due).then_some(*next)
    }

    /// A fetch was empty; `counters` were read before it.
    pub(crate) fn remember(&self, kind: &str, counters: WakeCounters, next: NextDue) {
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        if by_kind.len() >= MAX_KINDS && !by_kind.contains_key(kind) {
            by_kind.clear();
        }
        by_kind.insert(kind.to_owned(), (counters, next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: WakeCounters = WakeCounters {
        published: 3,
        rechecks: 1,
    };

    #[test]
    fn a_wake_or_a_recheck_since_the_empty_fetch_ends_it() {
        let polls = EmptyPolls::default();
        assert!(polls.still_empty("a", COUNTERS).is_none());
        polls.remember("a", COUNTERS, NextDue::default());
        assert!(polls.still_empty("a", COUNTERS).is_some());
        assert!(polls.still_empty("b", COUNTERS).is_none());
        let published = 4;
        let woken = WakeCounters {
            published,
            ..COUNTERS
        };
        assert!(polls.still_empty("a", woken).is_none());
        let rechecks = 2;
        let rechecked = WakeCounters {
            rechecks,
            ..COUNTERS
        };
        assert!(polls.still_empty("a", rechecked).is_none());
    }

    #[test]
    fn an_item_that_is_due_ends_it() {
        let polls = EmptyPolls::default();
        let at = Some(Instant::now());
        polls.remember("a", COUNTERS, NextDue { at });
        assert!(polls.still_empty("a", COUNTERS).is_none());
    }
}
