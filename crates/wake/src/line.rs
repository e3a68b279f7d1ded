//! The waiters of one key that have no pending wake, the longest wait first.

use std::collections::BTreeMap;

use crate::waiters::WaiterId;

/// Most keys have one waiter, so a single one needs no allocation.
#[derive(Debug, Default)]
pub(crate) enum Line {
    #[default]
    Empty,
    One(u64, WaiterId),
    Many(BTreeMap<u64, WaiterId>),
}

impl Line {
    pub(crate) fn insert(&mut self, seq: u64, id: WaiterId) {
        match self {
            Self::Empty => *self = Self::One(seq, id),
            Self::One(other, _) if *other == seq => {}
            Self::One(other, other_id) => {
                *self = Self::Many(BTreeMap::from([(*other, *other_id), (seq, id)]));
            }
            Self::Many(all) => {
                all.insert(seq, id);
            }
        }
    }

    pub(crate) fn remove(&mut self, seq: u64) {
        match self {
            Self::One(other, _) if *other == seq => *self = Self::Empty,
            Self::Empty | Self::One(..) => {}
            Self::Many(all) => {
                all.remove(&seq);
                if all.is_empty() {
                    *self = Self::Empty;
                }
            }
        }
    }

    /// The longest waiter among those that came after `after`.
    pub(crate) fn first_after(&self, after: Option<u64>) -> Option<(u64, WaiterId)> {
        match self {
            Self::Empty => None,
            Self::One(seq, id) => after
                .is_none_or(|after| *seq > after)
                .then_some((*seq, *id)),
            Self::Many(all) => match after {
                None => all.first_key_value(),
                Some(after) => all.range(after + 1..).next(),
            }
            .map(|(seq, id)| (*seq, *id)),
        }
    }
}
