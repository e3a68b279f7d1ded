//! What is to be sent to the other processes, coalesced.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};
use wakeline_wake::{Topic, WaitGroup, Wake, WakeMode};

use crate::{
    chunks::Chunk,
    message::{DelayedWake, milliseconds},
};

/// Past this many different wakes in one send, "everything of the door" is cheaper for everyone.
const MAX_WAKES: usize = 4_096;
/// Texts that wait to be sent; further ones are lost.
const MAX_TEXTS: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    batch: Mutex<OutboxBatch>,
    filled: Notify,
    /// Whether anything has still to be sent. Changed only under the lock above.
    unsent: watch::Sender<bool>,
}

/// What the next send carries.
#[derive(Debug, Default)]
pub(crate) struct OutboxBatch {
    counts: HashMap<Key, u32>,
    pub(crate) doors: Vec<String>,
    pub(crate) texts: Vec<Chunk>,
}

/// Topics, group, mode (a count is 0 here) and delay in milliseconds.
type Key = (Arc<[Topic]>, Option<WaitGroup>, WakeMode, u64);

impl Outbox {
    pub(crate) fn put_wakes(&self, wakes: &[Wake], delay: Duration) {
        self.fill(|batch| {
            for wake in wakes {
                batch.add_wake(wake, delay);
            }
        });
    }

    pub(crate) fn put_text(&self, door: &str, text: String) {
        self.fill(|batch| {
            if batch.texts.len() >= MAX_TEXTS {
                metrics::counter!("wakeline_bus_texts_lost_total").increment(1);
                return;
            }
            batch.texts.push(Chunk::whole(door, text, rand::random()));
        });
    }

    /// Anything of `doors` may have become ready: their wakes could not be sent.
    pub(crate) fn put_doors(&self, doors: impl IntoIterator<Item = String>) {
        self.fill(|batch| {
            for door in doors {
                batch.add_door(&door);
            }
        });
    }

    fn fill(&self, change: impl FnOnce(&mut OutboxBatch)) {
        let mut batch = self.batch();
        change(&mut batch);
        self.unsent.send_replace(true);
        drop(batch);
        self.filled.notify_one();
    }

    /// The batch that was taken has been sent.
    pub(crate) fn sent(&self) {
        let batch = self.batch();
        self.unsent.send_replace(!batch.is_empty());
    }

    /// Waits until all that was put has been sent.
    pub(crate) async fn flushed(&self) {
        let mut unsent = self.unsent.subscribe();
        // The sender is this outbox itself.
        let _ = unsent.wait_for(|unsent| !unsent).await;
    }

    /// Waits until there is something, and takes it all.
    pub(crate) async fn take(&self) -> OutboxBatch {
        loop {
            let batch = mem::take(&mut *self.batch());
            if !batch.is_empty() {
                return batch;
            }
            self.filled.notified().await;
        }
    }

    fn batch(&self) -> MutexGuard<'_, OutboxBatch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutboxBatch {
    fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.doors.is_empty() && self.texts.is_empty()
    }

    fn add_wake(&mut self, wake: &Wake, delay: Duration) {
        let Some(door) = wake.topics.first().map(Topic::door) else {
            return;
        };
        if self.doors.iter().any(|listed| listed == door) {
            return;
        }
        if self.counts.len() >= MAX_WAKES {
            self.add_door(door);
            return;
        }
        let (mode, more) = match wake.mode {
            WakeMode::Count(count) => (WakeMode::Count(0), count),
            mode => (mode, 0),
        };
        let (topics, group) = (wake.topics.clone(), wake.group.clone());
        let key = (topics, group, mode, milliseconds(delay));
        let count = self.counts.entry(key).or_default();
        *count = count.saturating_add(more);
    }

    fn add_door(&mut self, door: &str) {
        if !self.doors.iter().any(|listed| listed == door) {
            self.doors.push(door.to_owned());
            self.counts
                .retain(|(topics, ..), _| topics[0].door() != door);
        }
    }

    pub(crate) fn wakes(&self) -> Vec<DelayedWake> {
        self.counts
            .iter()
            .map(|((topics, group, mode, delay), count)| DelayedWake {
                wake: Wake {
                    topics: topics.clone(),
                    group: group.clone(),
                    mode: match mode {
                        WakeMode::Count(_) => WakeMode::Count(*count),
                        mode => *mode,
                    },
                },
                delay: Duration::from_millis(*delay),
            })
            .collect()
    }

    /// The doors that the batch has anything of.
    pub(crate) fn all_doors(&self) -> Vec<String> {
        let listed = self
            .counts
            .keys()
            .map(|(topics, ..)| topics[0].door().to_owned());
        let mut doors: Vec<String> = listed.chain(self.doors.iter().cloned()).collect();
        doors.sort_unstable();
        doors.dedup();
        doors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> Topic {
        Topic::new("queue", [name])
    }

    #[tokio::test]
    async fn the_same_topic_is_sent_once_with_the_sum() {
        let outbox = Outbox::default();
        for _ in 0..3 {
            outbox.put_wakes(&[Wake::count([topic("a")], 2)], Duration::ZERO);
        }
        let sum = DelayedWake {
            wake: Wake::count([topic("a")], 6),
            delay: Duration::ZERO,
        };
        assert_eq!(outbox.take().await.wakes(), [sum]);
    }

    #[tokio::test]
    async fn too_many_topics_become_a_recheck_of_the_door() {
        let outbox = Outbox::default();
        for number in 0..=MAX_WAKES {
            let wake = Wake::count([topic(&number.to_string())], 1);
            outbox.put_wakes(&[wake], Duration::ZERO);
        }
        let batch = outbox.take().await;
        assert_eq!(
            (batch.wakes(), batch.doors),
            (vec![], vec!["queue".to_owned()])
        );
    }
}
