//! What is done per queue and minute, counted in memory and written together.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    ack::{Outcome, Status},
    claim::Claimed,
    claiming::in_micros,
    id,
    step::{Done, Step},
};

const MINUTE_US: i64 = 60_000_000;
/// Queues and minutes that are kept until they are written; what is more is not counted.
const MAX_COUNTS: usize = 20_000;
/// Partitions whose queue is kept in mind; past it all are forgotten.
const MAX_PARTITIONS: usize = 200_000;

/// What one queue did in one minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// When the minute began, in microseconds since 1970.
    pub minute_us: i64,
    pub queue: String,
    pub pushed: i64,
    pub popped: i64,
    pub completed: i64,
    pub failed: i64,
    pub dead: i64,
    /// How long what was popped had waited, added up and at most.
    pub lag_us: i64,
    pub max_lag_us: i64,
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.pushed += other.pushed;
        self.popped += other.popped;
        self.completed += other.completed;
        self.failed += other.failed;
        self.dead += other.dead;
        self.lag_us = self.lag_us.saturating_add(other.lag_us);
        self.max_lag_us = self.max_lag_us.max(other.max_lag_us);
    }
}

#[derive(Debug, Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_minute: HashMap<(i64, String), Count>,
    /// An acknowledgement names only its partition.
    queues: HashMap<i64, String>,
}

fn now_us() -> i64 {
    in_micros(
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    )
}

impl Counts {
    fn add(&mut self, count: Count) {
        let is_full = self.by_minute.len() >= MAX_COUNTS;
        let key = (count.minute_us, count.queue.clone());
        match self.by_minute.get_mut(&key) {
            Some(known) => known.add(&count),
            None if is_full => {}
            None => {
                self.by_minute.insert(key, count);
            }
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
}

impl Tally {
    fn with<T>(&self, change: impl FnOnce(&mut Counts) -> T) -> T {
        change(&mut self.0.lock().expect("no panic while it is held"))
    }

    /// Counts what a step did.
    pub fn step(&self, step: &Step, done: &Done) {
        let minute_us = now_us() / MINUTE_US * MINUTE_US;
        let mut counts: HashMap<&str, Count> = HashMap::new();
        for (message, pushed) in step.pushes.iter().zip(&done.pushed) {
            if let Ok(pushed) = pushed
                && !pushed.duplicate
            {
                counts.entry(&message.queue).or_default().pushed += 1;
                if let Some(number) = id::partition_number(&pushed.partition_id) {
                    self.with(|counts| counts.remember(number, &message.queue));
                }
            }
        }
        self.with(|all| {
            for (queue, count) in counts {
                all.add(Count {
                    minute_us,
                    queue: queue.to_owned(),
                    ..count
                });
            }
            for (ack, outcome) in step.acks.iter().zip(&done.acked) {
                let (Outcome::Done { dead, .. }, Some(queue)) =
                    (outcome, all.queues.get(&ack.partition))
                else {
                    continue;
                };
                let mut count = Count {
                    minute_us,
                    queue: queue.clone(),
                    ..Count::default()
                };
                match ack.status {
                    Status::Completed => count.completed = 1,
                    Status::Failed | Status::Retry | Status::DeadLetter => count.failed = 1,
                }
                count.dead = i64::from(*dead);
                all.add(count);
            }
        });
    }

    /// Counts what was handed out.
    pub fn claim(&self, claimed: &Claimed) {
        let now = now_us();
        let mut count = Count {
            minute_us: now / MINUTE_US * MINUTE_US,
            queue: claimed.queue.clone(),
            ..Count::default()
        };
        for message in claimed.messages() {
            let lag = (now - message.created_us).max(0);
            count.popped += 1;
            count.lag_us = count.lag_us.saturating_add(lag);
            count.max_lag_us = count.max_lag_us.max(lag);
        }
        if claimed.lease.is_none() {
            count.completed = count.popped;
        }
        self.with(|counts| {
            for part in &claimed.parts {
                counts.remember(part.number, &claimed.queue);
            }
            counts.add(count);
        });
    }

    /// What was counted since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Count> {
        self.with(|counts| std::mem::take(&mut counts.by_minute))
            .into_values()
            .collect()
    }

    /// What could not be written is written the next time.
    pub fn give_back(&self, counts: Vec<Count>) {
        self.with(|all| {
            for count in counts {
                all.add(count);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{
        ack::Ack,
        message::{NewMessage, Pushed, Refusal},
    };

    #[test]
    fn what_was_done_is_counted_once() {
        let tally = Tally::default();
        let message = NewMessage {
            queue: "q".into(),
            partition: "p".into(),
            transaction_id: None,
            trace_id: None,
            payload: "1".into(),
            producer_sub: None,
            is_sealed: false,
        };
        let pushed = |duplicate| {
            Ok(Pushed {
                id: Uuid::nil(),
                transaction_id: String::new(),
                partition_id: id::partition(7),
                duplicate,
            })
        };
        let ack = |partition, status| Ack {
            partition,
            group: "g".into(),
            transaction_id: "t".into(),
            lease: None,
            status,
            error: None,
            keeps_lease: false,
        };
        let step = Step {
            pushes: vec![message; 3],
            acks: vec![
                ack(7, Status::Completed),
                ack(7, Status::Failed),
                ack(7, Status::Completed),
                ack(8, Status::Completed),
            ],
            ..Step::default()
        };
        let acked = |dead| Outcome::Done {
            lease_released: true,
            dead,
        };
        let done = Done {
            pushed: vec![pushed(false), pushed(true), Err(Refusal::Paused)],
            acked: vec![acked(false), acked(true), Outcome::Unknown, acked(false)],
            ..Done::default()
        };
        tally.step(&step, &done);
        let mut counts = tally.take();
        assert_eq!(counts.len(), 1, "{counts:?}");
        let count = counts.remove(0);
        assert_eq!(
            (count.pushed, count.completed, count.failed, count.dead),
            (1, 1, 1, 1)
        );
        assert_eq!(count.minute_us % MINUTE_US, 0);
        assert_eq!(tally.take(), []);
        tally.give_back(vec![count.clone(), count]);
        assert_eq!(tally.take()[0].pushed, 2);
    }
}
