//! Who is woken.

use wakeline_wake::{Topic, WaitGroup, WaitKey};

use crate::DOOR;

/// Something was saved: each node's follower reads on.
#[must_use]
pub fn log() -> Topic {
    Topic::new(DOOR, ["log"])
}

/// Something may have come into a feed: its streams on this node look.
#[must_use]
pub fn stream(feed: &str) -> Topic {
    Topic::new(DOOR, ["stream", feed])
}

pub(crate) fn key(topic: Topic) -> WaitKey {
    WaitKey::new(topic, WaitGroup::default())
}
