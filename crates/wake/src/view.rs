//! The engine's view for operators: its waiters, and the results of the wakes.

use crate::{
    state::State,
    topic::{Cause, EngineTime, Topic, WaitGroup, WaitKey},
};

/// Counted per door since the start, except `waiters`: the number of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorCounters {
    /// All that were given to the door since its first waiter; no metric shows it.
    pub wakes: u64,
    pub waiters: u64,
    pub registered: u64,
    pub refused: u64,
    /// Wakes that found work, by [`Cause`].
    pub found: [u64; Cause::ALL.len()],
    /// Wakes that found nothing, by [`Cause`].
    pub nothing: [u64; Cause::ALL.len()],
}

/// A key that has waiters: what a door's fallback checks the store for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedKey {
    pub topic: Topic,
    pub group: WaitGroup,
    pub waiters: usize,
}

/// One waiter.
#[derive(Clone, Debug)]
pub struct WaiterView {
    pub keys: Vec<WaitKey>,
    pub since: EngineTime,
    pub until: EngineTime,
    pub last_wake: Option<(Cause, EngineTime)>,
}

/// Some of the waiters, soonest deadline first.
#[derive(Clone, Debug)]
pub struct WaiterPage {
    pub total: usize,
    pub now: EngineTime,
    pub waiters: Vec<WaiterView>,
}

impl State {
    #[must_use]
    pub fn waiting(&self, door: &str) -> Vec<WaitedKey> {
        self.topics()
            .keys_of(door)
            .map(|(topic, group, waiters)| WaitedKey {
                topic: topic.clone(),
                group: group.clone(),
                waiters,
            })
            .collect()
    }

    #[must_use]
    pub fn page(&self, offset: usize, limit: usize, now: EngineTime) -> WaiterPage {
        let waiters = self
            .by_deadline()
            .skip(offset)
            .take(limit)
            .map(|waiter| WaiterView {
                keys: self.keys_of_waiter(waiter),
                since: waiter.since,
                until: waiter.until,
                last_wake: waiter.last_wake,
            })
            .collect();
        WaiterPage {
            total: self.held(),
            now,
            waiters,
        }
    }
}
