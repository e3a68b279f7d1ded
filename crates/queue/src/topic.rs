//! The topics that pops wait for, and the wakes. Each consumer group is a wait group: groups do not
//! compete.

use wakeline_wake::{Topic, WaitGroup, WaitKey, Wake};

use crate::claim::Source;

/// This door's name in topics, metrics and the list of waits.
pub const DOOR: &str = "queue";

/// A queue's name, with the namespace and task that it is popped by.
#[derive(Clone, Copy, Debug)]
pub struct QueueName<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    pub task: &'a str,
}

/// No queue's name is empty, so these topics cannot be mistaken for a queue's.
fn matching(namespace: Option<&str>, task: Option<&str>) -> Topic {
    let parts = match (namespace, task) {
        (Some(namespace), Some(task)) => vec!["", "namespace", namespace, "task", task],
        (Some(namespace), None) => vec!["", "namespace", namespace],
        (None, task) => vec!["", "task", task.unwrap_or_default()],
    };
    Topic::new(DOOR, parts)
}

/// The key where a pop waits.
#[must_use]
pub fn key(source: &Source, group: &str) -> WaitKey {
    let topic = match source {
        Source::Queue { queue, partition } => Topic::new(
            DOOR,
            [queue.as_str()].into_iter().chain(partition.as_deref()),
        ),
        Source::Matching { namespace, task } => matching(namespace.as_deref(), task.as_deref()),
    };
    WaitKey::new(topic, WaitGroup::new(group))
}

/// The topics of a queue as a whole.
fn topics(queue: QueueName<'_>) -> Vec<Topic> {
    let mut topics = vec![Topic::new(DOOR, [queue.name])];
    if !queue.namespace.is_empty() {
        topics.push(matching(Some(queue.namespace), None));
    }
    if !queue.task.is_empty() {
        topics.push(matching(None, Some(queue.task)));
    }
    if !queue.namespace.is_empty() && !queue.task.is_empty() {
        topics.push(matching(Some(queue.namespace), Some(queue.task)));
    }
    topics
}

/// What the pops of a queue as a whole claim from.
#[must_use]
pub fn sources_of_queue(queue: QueueName<'_>) -> Vec<Source> {
    topics(queue).iter().filter_map(source).collect()
}

#[must_use]
pub fn keys_of_queue(queue: QueueName<'_>, group: &str) -> Vec<WaitKey> {
    topics(queue)
        .into_iter()
        .map(|topic| WaitKey::new(topic, WaitGroup::new(group)))
        .collect()
}

/// A wake: `count` claims can be made from a partition, by this group or by any. The pops that wait for
/// the queue, for its namespace or task, and for just this partition compete for them.
#[must_use]
pub fn wake_of_partition(
    queue: QueueName<'_>,
    partition: &str,
    group: Option<&str>,
    count: u32,
) -> Wake {
    let mut topics = topics(queue);
    topics.insert(0, Topic::new(DOOR, [queue.name, partition]));
    let wake = Wake::count(topics, count);
    match group {
        Some(group) => wake.in_group(WaitGroup::new(group)),
        None => wake,
    }
}

/// Wakes for all pops that wait for the queue, its namespace, its task or these partitions.
#[must_use]
pub fn all(queue: QueueName<'_>, partitions: &[String]) -> Vec<Wake> {
    let mut all: Vec<Wake> = topics(queue).into_iter().map(Wake::all).collect();
    all.extend(
        partitions
            .iter()
            .map(|partition| Wake::all(Topic::new(DOOR, [queue.name, partition]))),
    );
    all
}

/// What a topic stands for.
#[must_use]
pub fn source(topic: &Topic) -> Option<Source> {
    let parts: Vec<&str> = topic.parts().collect();
    let text = |text: &&str| Some((*text).to_owned());
    Some(match parts.as_slice() {
        ["", "namespace", namespace] => Source::Matching {
            namespace: text(namespace),
            task: None,
        },
        ["", "task", task] => Source::Matching {
            namespace: None,
            task: text(task),
        },
        ["", "namespace", namespace, "task", task] => Source::Matching {
            namespace: text(namespace),
            task: text(task),
        },
        [queue] => Source::Queue {
            queue: text(queue)?,
            partition: None,
        },
        [queue, partition] => Source::Queue {
            queue: text(queue)?,
            partition: text(partition),
        },
        _ => return None,
    })
}
