//! Looking at the engine from outside: who waits for what, and what the wakes were good for.

use crate::{
    state::State,
    topic::{Cause, Lane, Moment, Place, Topic},
};

/// Counted per door since the start; `waiters` is how many there are now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// Wakes that were published, whoever waited for them.
    pub published: u64,
    pub waiters: u64,
    pub registered: u64,
    pub refused: u64,
    /// Wakes that found work, by [`Cause`].
    pub found: [u64; Cause::ALL.len()],
    /// Wakes that found nothing, by [`Cause`].
    pub nothing: [u64; Cause::ALL.len()],
}

/// A place where someone waits: what a door's fallback asks its store about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub topic: Topic,
    pub lane: Lane,
    pub waiters: usize,
}

/// One waiter as seen from outside.
#[derive(Clone, Debug)]
pub struct Seen {
    pub places: Vec<Place>,
    pub since: Moment,
    pub until: Moment,
    pub last_wake: Option<(Cause, Moment)>,
}

/// Some of the waiters, soonest deadline first.
#[derive(Clone, Debug)]
pub struct Page {
    pub total: usize,
    pub now: Moment,
    pub waiters: Vec<Seen>,
}

impl State {
    #[must_use]
    pub fn waiting(&self, door: &str) -> Vec<Waiting> {
        self.topics()
            .places_of(door)
            .map(|(topic, lane, waiters)| Waiting {
                topic: topic.clone(),
                lane: lane.clone(),
                waiters,
            })
            .collect()
    }

    #[must_use]
    pub fn page(&self, offset: usize, limit: usize, now: Moment) -> Page {
        let waiters = self
            .by_deadline()
            .skip(offset)
            .take(limit)
            .map(|waiter| Seen {
                places: self.places_of_waiter(waiter),
                since: waiter.since,
                until: waiter.until,
                last_wake: waiter.last_wake,
            })
            .collect();
        Page {
            total: self.held(),
            now,
            waiters,
        }
    }
}
