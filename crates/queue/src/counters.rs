//! Counters per queue and minute: counted in memory, written together.

mod held_pops;
mod node_stats;
mod row;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

pub use held_pops::{HeldPopSamples, HeldPops};
pub use node_stats::{NodeStats, NodeStatsSampler, SampleInputs};
pub use row::{CounterColumn, CounterRow, MINUTE_US, QUEUE_COLUMNS, SERVER_COLUMNS, columns};

use crate::{
    ack::{AckOutcome, AckStatus},
    claim::{Claim, Source},
    claiming::duration_to_us,
    id,
    queue_admin::SweptQueue,
    write_batch::{BatchOutcome, WriteBatch},
};

/// Rows that are kept until they are written; further queues and minutes are not counted.
const MAX_COUNTS: usize = 20_000;
/// Partitions whose queue is remembered; past it all are forgotten.
const MAX_PARTITIONS: usize = 200_000;
/// The queue name of the server's own row.
const SERVER: &str = "";

#[derive(Debug, Default)]
pub struct Counters(Mutex<PendingCounters>);

#[derive(Debug, Default)]
struct PendingCounters {
    by_minute: HashMap<i64, MinuteCounters>,
    kept: usize,
    /// An acknowledgement names only its partition.
    queues: HashMap<i64, String>,
    /// Messages pushed and acknowledged since they were last taken.
    processed: i64,
    /// The store's failures when they were last read.
    failures: u64,
}

#[derive(Debug, Default)]
struct MinuteCounters {
    queues: HashMap<String, CounterRow>,
    /// For partitions whose queue this node does not know.
    partitions: HashMap<i64, CounterRow>,
}

#[must_use]
pub fn now_us() -> i64 {
    duration_to_us(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

impl PendingCounters {
    fn add(&mut self, minute_us: i64, queue: &str, add: impl FnOnce(&mut CounterRow)) {
        let minute = self.by_minute.entry(minute_us).or_default();
        if let Some(known) = minute.queues.get_mut(queue) {
            return add(known);
        }
        if self.kept < MAX_COUNTS {
            self.kept += 1;
            let count = CounterRow {
                minute_us,
                queue: queue.to_owned(),
                ..CounterRow::default()
            };
            add(minute.queues.entry(queue.to_owned()).or_insert(count));
        }
    }

    fn add_at(&mut self, minute_us: i64, partition: i64, add: impl FnOnce(&mut CounterRow)) {
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
            let count = CounterRow {
                minute_us,
                partition: Some(partition),
                ..CounterRow::default()
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

    fn acked(&mut self, minute_us: i64, partition: i64, status: AckStatus, dead: bool) {
        self.processed += 1;
        self.add_at(minute_us, partition, |count| {
            match status {
                AckStatus::Completed => count.completed += 1,
                AckStatus::Failed | AckStatus::Retry | AckStatus::DeadLetter => count.failed += 1,
            }
            count.dead += i64::from(dead);
        });
    }
}

impl Counters {
    fn with<T>(&self, change: impl FnOnce(&mut PendingCounters, i64) -> T) -> T {
        let minute_us = now_us() / MINUTE_US * MINUTE_US;
        change(
            &mut self.0.lock().unwrap_or_else(PoisonError::into_inner),
            minute_us,
        )
    }

    /// Counts a call that pushes or acknowledges, once, whatever its outcome. A call for several queues
    /// counts for each of them, and once for the server.
    pub fn count_call(&self, batch: &WriteBatch) {
        let queues: BTreeSet<&str> = batch.pushes.iter().map(|m| &*m.queue).collect();
        let partitions: BTreeSet<i64> = batch.acks.iter().map(|ack| ack.partition).collect();
        self.with(|counts, minute_us| {
            let known = |partition: &i64| counts.queues.get(partition).cloned();
            let read: BTreeSet<String> = partitions.iter().filter_map(known).collect();
            // Unknown partitions are counted as one queue: most likely they are.
            let unknown = partitions
                .iter()
                .find(|partition| !counts.queues.contains_key(partition));
            if batch.is_whole {
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

    /// Counts what a write batch did.
    pub fn count_outcome(&self, batch: &WriteBatch, done: &BatchOutcome) {
        self.with(|counts, minute_us| {
            for (message, pushed) in batch.pushes.iter().zip(&done.pushed) {
                let Ok(pushed) = pushed else { continue };
                if pushed.duplicate {
                    continue;
                }
                // A partition is created with its first message.
                let place = id::partition_and_position(&pushed.id);
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
            for (ack, outcome) in batch.acks.iter().zip(&done.acked) {
                if let AckOutcome::Done { dead, .. } = outcome {
                    counts.acked(minute_us, ack.partition, ack.status, *dead);
                }
            }
        });
    }

    /// Counts a pop. A pop by namespace or task belongs to no queue.
    pub fn count_pop(&self, source: &Source) {
        self.pop(source, |count| count.pop_requests += 1);
    }

    /// Counts a pop that ended without a message.
    pub fn count_empty_pop(&self, source: &Source) {
        self.pop(source, |count| count.empty_pops += 1);
    }

    fn pop(&self, source: &Source, add: fn(&mut CounterRow)) {
        self.with(|counts, minute_us| {
            counts.add(minute_us, SERVER, add);
            if let Source::Queue { queue, .. } = source {
                counts.add(minute_us, queue, add);
            }
        });
    }

    /// Counts the messages that were handed out.
    pub fn count_claim(&self, claimed: &Claim) {
        let now = now_us();
        let mut popped = CounterRow::default();
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

    pub fn count_swept(&self, queues: &[SweptQueue]) {
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

    pub fn count_deleted_partitions(&self, queue: &str, partitions: i64) {
        self.with(|counts, minute_us| {
            counts.add(minute_us, queue, |count| {
                count.partitions_deleted += partitions;
            });
        });
    }

    /// Counts failures of the store, given how many there were since the start.
    pub fn count_store_failures(&self, failures: u64) {
        self.with(|counts, minute_us| {
            let new = failures.saturating_sub(counts.failures);
            counts.failures = failures;
            if new > 0 {
                let new = i64::try_from(new).unwrap_or(i64::MAX);
                counts.add(minute_us, SERVER, |count| count.store_failures += new);
            }
        });
    }

    /// Messages pushed and acknowledged since the last call.
    #[must_use]
    pub fn take_processed(&self) -> i64 {
        self.with(|counts, _| std::mem::take(&mut counts.processed))
    }

    /// Takes back messages that could not be written.
    pub fn put_back_processed(&self, messages: i64) {
        self.with(|counts, _| counts.processed += messages);
    }

    /// The counters since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<CounterRow> {
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

    /// Takes back counters that could not be written.
    pub fn put_back(&self, counts: Vec<CounterRow>) {
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
