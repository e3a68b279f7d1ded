//! The registered waiters, in slots that are reused.

use std::sync::Arc;

use crate::{
    topic::{Cause, EngineTime, Topic, WakeMode},
    topics::KeySlot,
};

/// Names a registered waiter until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub(crate) u32);

impl WaiterId {
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A wake given to one waiter.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    pub(crate) topics: Arc<[Topic]>,
    pub(crate) at: EngineTime,
    /// The wake was passed on by the waiters up to this `seq`.
    pub(crate) after: Option<u64>,
    /// Which of the waiter's keys it is for.
    pub(crate) key: u32,
    pub(crate) mode: WakeMode,
    pub(crate) cause: Cause,
}

#[derive(Debug)]
pub(crate) struct WaiterEntry {
    /// Order of arrival. It stays the same however often a wake turns out to be in vain.
    pub(crate) seq: u64,
    pub(crate) since: EngineTime,
    pub(crate) until: EngineTime,
    pub(crate) keys: Box<[KeySlot]>,
    /// Given, and not yet returned by a park.
    pub(crate) pending: Option<Box<Permit>>,
    /// Returned by a park, and not yet completed: the waiter is checking the store.
    pub(crate) in_check: Option<Box<Permit>>,
    pub(crate) last_wake: Option<(Cause, EngineTime)>,
    pub(crate) timed_out: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Waiters {
    slots: Vec<Option<WaiterEntry>>,
    free: Vec<u32>,
    count: usize,
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// An id for a waiter that is about to be [`put`](Self::put).
    pub(crate) fn reserve(&mut self) -> WaiterId {
        WaiterId(self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("the limit is below 2^32")
        }))
    }

    pub(crate) fn put(&mut self, id: WaiterId, waiter: WaiterEntry) {
        self.slots[id.index()] = Some(waiter);
        self.count += 1;
    }

    pub(crate) fn take(&mut self, id: WaiterId) -> WaiterEntry {
        let waiter = self.slots[id.index()].take().expect("a waiter leaves once");
        self.free.push(id.0);
        self.count -= 1;
        waiter
    }

    pub(crate) fn get(&self, id: WaiterId) -> &WaiterEntry {
        self.slots[id.index()]
            .as_ref()
            .expect("the waiter is registered")
    }

    pub(crate) fn get_mut(&mut self, id: WaiterId) -> &mut WaiterEntry {
        self.slots[id.index()]
            .as_mut()
            .expect("the waiter is registered")
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = WaiterId> {
        (0..)
            .map(WaiterId)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.is_some())
            .map(|(id, _)| id)
    }
}
