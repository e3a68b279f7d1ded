//! What has become ready since the last send, coalesced.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, watch};
use wakeline_wake::{Topic, WaitGroup, Wake, WakeMode};

use crate::{
    chunks::Chunk,
    message::{OutgoingWake, milliseconds},
};

/// Past this many different wakes in one send, "everything of the door" is cheaper for everyone.
const MAX_WAKES: usize = 4_096;
/// Texts that wait to be sent; what is told past it is lost.
const MAX_TEXTS: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    gathered: Mutex<OutboxBatch>,
    filled: Notify,
    /// Whether anything has still to be sent. Changed only under the lock above.
    unsent: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct OutboxBatch {
    counts: HashMap<Key, u32>,
    pub(crate) doors: Vec<String>,
    pub(crate) texts: Vec<Chunk>,
}

/// What is woken, how, and after how many milliseconds.
type Key = (Arc<[Topic]>, Option<WaitGroup>, Kind, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    All,
    Count,
    Chain,
}

impl Outbox {
    pub(crate) fn put<'a>(&self, wakes: impl IntoIterator<Item = &'a Wake>, after: Duration) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        for wake in wakes {
            gathered.add(wake, after);
        }
        self.unsent.send_replace(true);
        drop(gathered);
        self.filled.notify_one();
    }

    pub(crate) fn put_text(&self, door: &str, text: String) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        if gathered.texts.len() >= MAX_TEXTS {
            metrics::counter!("wakeline_bus_texts_lost_total").increment(1);
            return;
        }
        gathered
            .texts
            .push(Chunk::whole(door, text, rand::random()));
        self.unsent.send_replace(true);
        drop(gathered);
        self.filled.notify_one();
    }

    /// Everything of `doors` may have changed: what was gathered could not be sent.
    pub(crate) fn put_doors(&self, doors: impl IntoIterator<Item = String>) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        for door in doors {
            gathered.add_door(&door);
        }
        self.unsent.send_replace(true);
        drop(gathered);
        self.filled.notify_one();
    }

    /// What was taken has been sent.
    pub(crate) fn sent(&self) {
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        self.unsent.send_replace(!gathered.is_empty());
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
            let gathered =
                mem::take(&mut *self.gathered.lock().unwrap_or_else(PoisonError::into_inner));
            if !gathered.is_empty() {
                return gathered;
            }
            self.filled.notified().await;
        }
    }
}

impl OutboxBatch {
    fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.doors.is_empty() && self.texts.is_empty()
    }

    fn add(&mut self, wake: &Wake, after: Duration) {
        let Some(door) = wake.topics.first().map(Topic::door) else {
            return;
        };
        if self.doors.iter().any(|known| known == door) {
            return;
        }
        if self.counts.len() >= MAX_WAKES {
            self.add_door(door);
            return;
        }
        let (kind, more) = match wake.mode {
            WakeMode::All => (Kind::All, 0),
            WakeMode::Chain => (Kind::Chain, 0),
            WakeMode::Count(count) => (Kind::Count, count),
        };
        let count = self
            .counts
            .entry((
                wake.topics.clone(),
                wake.group.clone(),
                kind,
                milliseconds(after),
            ))
            .or_default();
        *count = count.saturating_add(more);
    }

    fn add_door(&mut self, door: &str) {
        if !self.doors.iter().any(|known| known == door) {
            self.doors.push(door.to_owned());
            self.counts
                .retain(|(topics, ..), _| topics[0].door() != door);
        }
    }

    pub(crate) fn said(&self) -> Vec<OutgoingWake> {
        self.counts
            .iter()
            .map(|((topics, group, kind, after), count)| OutgoingWake {
                wake: Wake {
                    topics: topics.clone(),
                    group: group.clone(),
                    mode: match kind {
                        Kind::All => WakeMode::All,
                        Kind::Count => WakeMode::Count(*count),
                        Kind::Chain => WakeMode::Chain,
                    },
                },
                after: Duration::from_millis(*after),
            })
            .collect()
    }

    /// The doors that anything was gathered for.
    pub(crate) fn touched(&self) -> Vec<String> {
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
            outbox.put(&[Wake::count([topic("a")], 2)], Duration::ZERO);
        }
        let said = OutgoingWake {
            wake: Wake::count([topic("a")], 6),
            after: Duration::ZERO,
        };
        assert_eq!(outbox.take().await.said(), [said]);
    }

    #[tokio::test]
    async fn too_many_topics_become_everything_of_the_door() {
        let outbox = Outbox::default();
        for number in 0..=MAX_WAKES {
            outbox.put(
                &[Wake::count([topic(&number.to_string())], 1)],
                Duration::ZERO,
            );
        }
        let gathered = outbox.take().await;
        assert_eq!(
            (gathered.said(), gathered.doors),
            (vec![], vec!["queue".to_owned()])
        );
    }
}
