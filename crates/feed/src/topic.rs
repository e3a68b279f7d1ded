//! Who is woken.

use wakeline_wake::{Lane, Place, Topic};

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

pub(crate) fn place(topic: Topic) -> Place {
    Place::new(topic, Lane::default())
}
