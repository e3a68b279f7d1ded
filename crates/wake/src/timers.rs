//! Wakes that are due later, ordered by time.

use std::{collections::BTreeMap, num::NonZeroU64};

use crate::topic::{EngineTime, Wake};

/// Names a timer, to cancel it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId {
    due: EngineTime,
    /// Never zero, so that `Option<TimerId>` is no larger.
    number: NonZeroU64,
}

impl TimerId {
    pub(crate) fn due(self) -> EngineTime {
        self.due
    }
}

#[derive(Debug)]
pub(crate) struct Timers {
    by_due: BTreeMap<TimerId, Wake>,
    last_number: NonZeroU64,
    limit: usize,
}

impl Timers {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            by_due: BTreeMap::new(),
            last_number: NonZeroU64::MIN,
            limit,
        }
    }

    /// `None` past the limit: then the fallback finds what is due.
    pub(crate) fn set(&mut self, due: EngineTime, wake: Wake) -> Option<TimerId> {
        if self.by_due.len() >= self.limit {
            return None;
        }
        self.last_number = self.last_number.saturating_add(1);
        let id = TimerId {
            due,
            number: self.last_number,
        };
        self.by_due.insert(id, wake);
        Some(id)
    }

    pub(crate) fn cancel(&mut self, id: TimerId) -> bool {
        self.by_due.remove(&id).is_some()
    }

    pub(crate) fn is_set(&self, id: TimerId) -> bool {
        self.by_due.contains_key(&id)
    }

    pub(crate) fn next_due(&self) -> Option<EngineTime> {
        self.by_due.first_key_value().map(|(id, _)| id.due)
    }

    pub(crate) fn take_due(&mut self, now: EngineTime) -> Option<Wake> {
        if self.next_due()? > now {
            return None;
        }
        self.by_due.pop_first().map(|(_, wake)| wake)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_due.len()
    }
}
