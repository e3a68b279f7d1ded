//! The topics that the feeds' waiters wait for.

use wakeline_wake::{Topic, WaitGroup, WaitKey};

use crate::DOOR;

/// Facts were saved: each node's follower reads on.
#[must_use]
pub fn log() -> Topic {
    Topic::new(DOOR, ["log"])
}

/// A feed may have new tuples: its streams on this node read them.
#[must_use]
pub fn stream(feed: &str) -> Topic {
    Topic::new(DOOR, ["stream", feed])
}

pub(crate) fn key(topic: Topic) -> WaitKey {
    WaitKey::new(topic, WaitGroup::default())
}
