//! Who is woken by what. A consumer group is a lane: groups do not compete.

use wakeline_wake::{Lane, Place, Topic, Wake};

/// This door's name in topics, metrics and the list of waits.
pub const DOOR: &str = "queue";

/// Where a `pop` waits: at the queue, or at one of its partitions.
#[must_use]
pub fn place(queue: &str, partition: Option<&str>, group: &str) -> Place {
    let topic = Topic::new(DOOR, [queue].into_iter().chain(partition));
    Place::new(topic, Lane::new(group))
}

/// `count` claims can be had from a partition, by this group or by any. Whoever waits for the
/// queue and whoever waits for just this partition compete for them.
#[must_use]
pub fn ready(queue: &str, partition: &str, group: Option<&str>, count: u32) -> Wake {
    let topics = [
        Topic::new(DOOR, [queue, partition]),
        Topic::new(DOOR, [queue]),
    ];
    let wake = Wake::count(topics, count);
    match group {
        Some(group) => wake.in_lane(Lane::new(group)),
        None => wake,
    }
}

/// Reads a place back: queue and, if it is about one, partition.
#[must_use]
pub fn parts(topic: &Topic) -> Option<(&str, Option<&str>)> {
    let mut parts = topic.parts();
    Some((parts.next()?, parts.next()))
}
