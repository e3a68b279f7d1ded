//! What is done per queue and minute, counted in memory and written together.

mod count;
mod parked;
mod vitals;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

pub use count::{Column, Count, MINUTE_US, OF_QUEUES, OF_SERVER, columns};
pub use parked::{Parked, Samples};
pub use vitals::{Moment, Pulse, Vitals};

use crate::{
    ack::{Outcome, Status},
    claim::{Claimed, Source},
    claiming::in_micros,
    id,
    manage::SweptQueue,
    step::{Done, Step},
};

/// Queues and minutes that are kept until they are written; what is more is not counted.
const MAX_COUNTS: usize = 20_000;
/// Partitions whose queue is kept in mind; past it all are forgotten.
const MAX_PARTITIONS: usize = 200_000;
/// The name that the server as a whole is counted under.
const SERVER: &str = "";

#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_minute: HashMap<i64, Minute>,
    kept: usize,
    /// An acknowledgement names only its partition.
    queues: HashMap<i64, String>,
    /// Messages since it was last asked.
    processed: i64,
    /// Of the store, when they were last looked at.
    failures: u64,
}

#[derive(Debug, Default)]
struct Minute {
    queues: HashMap<String, Count>,
    /// Of partitions whose queue is not known here.
    partitions: HashMap<i64, Count>,
}

#[must_use]
pub fn now_us() -> i64 {
    in_micros(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

impl Counts {
    fn add(&mut self, minute_us: i64, queue: &str, add: impl FnOnce(&mut Count)) {
        let minute = self.by_minute.entry(minute_us).or_default();
        if let Some(known) = minute.queues.get_mut(queue) {
            return add(known);
        }
        if self.kept < MAX_COUNTS {
            self.kept += 1;
            let count = Count {
                minute_us,
                queue: queue.to_owned(),
                ..Count::default()
            };
            add(minute.queues.entry(queue.to_owned()).or_insert(count));
        }
    }

    fn add_at(&mut self, minute_us: i64, partition: i64, add: impl FnOnce(&mut Count)) {
        if let Some(queue) = self.queues.get(&partition) {
            let queue = queue.clone();
            return self.add(minute_us, &queue, add);
        }
        let minute = self.by_minute.entry(minute_us).or_default();
        if let Some(known) = minute.partitions.get_mut(&partition) {
            return add(known);
        }
        if self.kept < MAX_COUNTS {
            self.kept += 1;
            let count = Count {
                minute_us,
                partition: Some(partition),
                ..Count::default()
            };
            add(minute.partitions.entry(partition).or_insert(count));
        }
    }

    fn remember(&mut self, partition: i64, queue: &str) {
        if self
            .queues
            .get(&partition)
            .is_some_and(|name| name == queue)
        {
            return;
        }
        if self.queues.len() >= MAX_PARTITIONS {
            self.queues.clear();
        }
        self.queues.insert(partition, queue.to_owned());
    }

    fn acked(&mut self, minute_us: i64, partition: i64, status: Status, dead: bool) {
        self.processed += 1;
        self.add_at(minute_us, partition, |count| {
            match status {
                Status::Completed => count.completed += 1,
                Status::Failed | Status::Retry | Status::DeadLetter => count.failed += 1,
            }
            count.dead += i64::from(dead);
        });
    }
}

impl Tally {
    fn with<T>(&self, change: impl FnOnce(&mut Counts, i64) -> T) -> T {
        let minute_us = now_us() / MINUTE_US * MINUTE_US;
        change(
            &mut self.0.lock().unwrap_or_else(PoisonError::into_inner),
            minute_us,
        )
    }

    /// Counts a call that pushes or acknowledges, once, whatever comes of it. One that concerns
    /// several queues counts for each of them, and for the server once.
    pub fn asked(&self, step: &Step) {
        let queues: BTreeSet<&str> = step.pushes.iter().map(|m| &*m.queue).collect();
        let partitions: BTreeSet<i64> = step.acks.iter().map(|ack| ack.partition).collect();
        self.with(|counts, minute_us| {
            let known = |partition: &i64| counts.queues.get(partition).cloned();
            let read: BTreeSet<String> = partitions.iter().filter_map(known).collect();
            // Most likely they are of one queue: more would be guessed.
            let unknown = partitions
                .iter()
                .find(|partition| !counts.queues.contains_key(partition));
            if step.is_whole {
                counts.add(minute_us, SERVER, |count| count.transactions += 1);
                let read = read.iter().map(|queue| &**queue);
                for queue in queues.iter().copied().chain(read).collect::<BTreeSet<_>>() {
                    counts.add(minute_us, queue, |count| count.transactions += 1);
                }
                return;
            }
            counts.add(minute_us, SERVER, |count| {
                count.push_requests += i64::from(!queues.is_empty());
                count.ack_requests += i64::from(!partitions.is_empty());
            });
            for queue in queues {
                counts.add(minute_us, queue, |count| count.push_requests += 1);
            }
            for queue in read {
                counts.add(minute_us, &queue, |count| count.ack_requests += 1);
            }
            if let Some(partition) = unknown {
                counts.add_at(minute_us, *partition, |count| count.ack_requests += 1);
            }
        });
    }

    /// Counts what a step did.
    pub fn step(&self, step: &Step, done: &Done) {
        self.with(|counts, minute_us| {
            for (message, pushed) in step.pushes.iter().zip(&done.pushed) {
                let Ok(pushed) = pushed else { continue };
                if pushed.duplicate {
                    continue;
                }
                // A partition begins with its first message.
                let place = id::place(&pushed.id);
                let is_first = place.is_some_and(|(_, position)| position == 0);
                counts.processed += 1;
                counts.add(minute_us, &message.queue, |count| {
                    count.pushed += 1;
                    count.partitions_made += i64::from(is_first);
                });
                if let Some(number) = id::partition_number(&pushed.partition_id) {
                    counts.remember(number, &message.queue);
                }
            }
            for (ack, outcome) in step.acks.iter().zip(&done.acked) {
                if let Outcome::Done { dead, .. } = outcome {
                    counts.acked(minute_us, ack.partition, ack.status, *dead);
                }
            }
        });
    }

    /// Counts a pop. One by namespace or task is of no queue.
    pub fn asked_for(&self, source: &Source) {
        self.pop(source, |count| count.pop_requests += 1);
    }

    /// Counts a pop that ended without a message.
    pub fn found_nothing(&self, source: &Source) {
        self.pop(source, |count| count.empty_pops += 1);
    }

    fn pop(&self, source: &Source, add: fn(&mut Count)) {
        self.with(|counts, minute_us| {
            counts.add(minute_us, SERVER, add);
            if let Source::Queue { queue, .. } = source {
                counts.add(minute_us, queue, add);
            }
        });
    }

    /// Counts what was handed out.
    pub fn claim(&self, claimed: &Claimed) {
        let now = now_us();
        let mut popped = Count::default();
        for message in claimed.messages() {
            let lag = (now - message.created_us).max(0);
            popped.popped += 1;
            popped.lag_us = popped.lag_us.saturating_add(lag);
            popped.max_lag_us = popped.max_lag_us.max(lag);
        }
        if claimed.lease.is_none() {
            popped.completed = popped.popped;
        }
        self.with(|counts, minute_us| {
            counts.processed += popped.completed;
            for part in &claimed.parts {
                counts.remember(part.number, &claimed.queue);
            }
            counts.add(minute_us, &claimed.queue, |count| count.add(&popped));
        });
    }

    pub fn swept(&self, queues: &[SweptQueue]) {
        self.with(|counts, minute_us| {
            for swept in queues {
                counts.add(minute_us, &swept.queue, |count| {
                    count.sweeps += 1;
                    count.retained_out += swept.retained;
                    count.completed_out += swept.completed;
                    count.evicted_out += swept.evicted;
                });
            }
        });
    }

    pub fn deleted(&self, queue: &str, partitions: i64) {
        self.with(|counts, minute_us| {
            counts.add(minute_us, queue, |count| {
                count.partitions_deleted += partitions;
            });
        });
    }

    /// Counts how often the store has failed, given how often it has since the start.
    pub fn store_failed(&self, failures: u64) {
        self.with(|counts, minute_us| {
            let new = failures.saturating_sub(counts.failures);
            counts.failures = failures;
            if new > 0 {
                let new = i64::try_from(new).unwrap_or(i64::MAX);
                counts.add(minute_us, SERVER, |count| count.store_failures += new);
            }
        });
    }

    /// Messages pushed and acknowledged since the last time.
    #[must_use]
    pub fn take_processed(&self) -> i64 {
        self.with(|counts, _| std::mem::take(&mut counts.processed))
    }

    /// They could not be written.
    pub fn give_back_processed(&self, messages: i64) {
        self.with(|counts, _| counts.processed += messages);
    }

    /// What was counted since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Count> {
        let minutes = self.with(|counts, _| {
            counts.kept = 0;
            std::mem::take(&mut counts.by_minute)
        });
        minutes
            .into_values()
            .flat_map(|minute| {
                let queues = minute.queues.into_values();
                queues.chain(minute.partitions.into_values())
            })
            .collect()
    }

    /// What could not be written is written the next time.
    pub fn give_back(&self, counts: Vec<Count>) {
        self.with(|all, _| {
            for count in counts {
                match count.partition {
                    Some(partition) => {
                        all.add_at(count.minute_us, partition, |known| known.add(&count));
                    }
                    None => all.add(count.minute_us, &count.queue, |known| known.add(&count)),
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
