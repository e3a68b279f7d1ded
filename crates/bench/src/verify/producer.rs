//! Producers: small pushes and large ones, some sent again until they are acknowledged.

use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, seq::IndexedRandom};
use serde::Deserialize;
use serde_json::json;

use super::history::{MessageNumber, Push, PushOutcome, Repeat};
use super::run::{CallFailure, Caller, CallerRecord, Run, address, blank_history};

/// A large push takes long enough for small ones to overtake it on the way.
const LARGE: &[usize] = &[2000, 700, 300, 100];
const SMALL: &[usize] = &[1, 1, 1, 1, 2, 3, 5, 10];
/// Gets more pushes than the other partitions.
const HOT_PARTITION: usize = 0;
const PAD: usize = 200;
/// How long a push under transaction ids is sent again before its outcome stays unknown.
const RETRY_TIME: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Producer {
    caller: Caller,
    record: CallerRecord,
    name: String,
    sizes: &'static [usize],
    /// Time for each item.
    pace: Duration,
}

#[derive(Deserialize)]
struct ItemResult<'a> {
    status: &'a str,
}

impl Producer {
    /// A producer of large pushes or of small ones, at `rate` messages per second.
    pub(super) fn new(run: &Arc<Run>, index: usize, is_large: bool, rate: f64) -> Self {
        let name = format!("producer-{index}");
        Self {
            caller: Caller::new(run, &name),
            record: CallerRecord::default(),
            name,
            sizes: if is_large { LARGE } else { SMALL },
            pace: Duration::from_secs_f64(1.0 / rate),
        }
    }

    /// Until the run stops.
    pub(super) async fn run(mut self) -> CallerRecord {
        // The largest push comes first, so that every run has one, however short.
        let mut size = self.sizes[0];
        while !self.caller.run.is_stopping() {
            let items = self.items(size);
            let again = self.caller.random.random_bool(0.5);
            let outcome = self.push(&items, again).await;
            if outcome == PushOutcome::Stored && again && self.caller.random.random_bool(0.1) {
                self.repeat(&items).await;
            }
            let spread = self.caller.random.random_range(0.0..2.0);
            self.rest(self.pace.mul_f64(size as f64 * spread)).await;
            size = *self.sizes.choose(&mut self.caller.random).expect("sizes");
        }
        self.record
    }

    async fn rest(&self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < until && !self.caller.run.is_stopping() {
            let next = tokio::time::Instant::now() + Duration::from_millis(50);
            tokio::time::sleep_until(until.min(next)).await;
        }
    }

    /// For the hot partition, for another one, or spread over all.
    fn items(&mut self, size: usize) -> Vec<(usize, MessageNumber)> {
        let partitions = blank_history().partitions.len();
        let random = &mut self.caller.random;
        let one = match random.random_range(0..10) {
            0..4 => Some(HOT_PARTITION),
            4..8 => Some(random.random_range(0..partitions)),
            _ => None,
        };
        (0..size)
            .map(|_| {
                let partition = one.unwrap_or_else(|| random.random_range(0..partitions));
                (partition, self.caller.run.number())
            })
            .collect()
    }

    async fn push(&mut self, items: &[(usize, MessageNumber)], with_ids: bool) -> PushOutcome {
        let body = self.body(items, with_ids);
        let begin = self.caller.run.now();
        let deadline = tokio::time::Instant::now() + RETRY_TIME;
        let mut outcome = PushOutcome::Refused;
        loop {
            match self.attempt(&body).await {
                Ok(statuses) => {
                    let fits =
                        |status: &String| status == "queued" || (with_ids && status == "duplicate");
                    if statuses.len() == items.len() && statuses.iter().all(fits) {
                        outcome = PushOutcome::Stored;
                    } else {
                        let unexpected = &self.caller.run.unexpected;
                        unexpected.add("push", &format!("answered {statuses:?}"));
                        outcome = PushOutcome::Unknown;
                    }
                    break;
                }
                Err(CallFailure::Refused) => {}
                // One attempt of unknown outcome is enough.
                Err(CallFailure::Unknown) => outcome = PushOutcome::Unknown,
            }
            if !with_ids || tokio::time::Instant::now() >= deadline {
                break;
            }
            self.record.events.count("pushes sent again");
            self.caller.pause().await;
        }
        let push = Push {
            begin,
            end: self.caller.run.now(),
            items: items.to_vec(),
            outcome,
        };
        self.record.history.pushes.push(push);
        if outcome != PushOutcome::Stored {
            self.caller.pause().await;
        }
        outcome
    }

    /// Pushes the same items once more: each has to be called a duplicate.
    async fn repeat(&mut self, items: &[(usize, MessageNumber)]) {
        let body = self.body(items, true);
        if let Ok(statuses) = self.attempt(&body).await {
            let repeats = items.iter().zip(&statuses);
            let repeats = repeats.map(|(&(partition, number), status)| Repeat {
                partition,
                number,
                answered_duplicate: status == "duplicate",
            });
            self.record.history.repeats.extend(repeats);
        }
    }

    async fn attempt(&mut self, body: &str) -> Result<Vec<String>, CallFailure> {
        let response = self.caller.post("/api/v1/push", body.to_owned()).await?;
        let pushed: Result<Vec<ItemResult<'_>>, _> = serde_json::from_slice(&response.body);
        let pushed = pushed.map_err(|_| {
            self.caller.run.unexpected.add("push", &response.describe());
            CallFailure::Unknown
        })?;
        Ok(pushed.iter().map(|one| one.status.to_owned()).collect())
    }

    fn body(&mut self, items: &[(usize, MessageNumber)], with_ids: bool) -> String {
        let pad = "x".repeat(self.caller.random.random_range(0..PAD));
        let items: Vec<_> = items
            .iter()
            .map(|&(partition, number)| {
                let mut item = item(partition, number, &pad);
                if with_ids {
                    item["transactionId"] = json!(format!("{}-{number}", self.name));
                }
                item
            })
            .collect();
        json!({ "items": items }).to_string()
    }
}

/// A message to a partition, identified by its number.
pub(super) fn item(partition: usize, number: MessageNumber, pad: &str) -> serde_json::Value {
    let (queue, partition) = address(partition);
    let payload = json!({ "n": number, "pad": pad });
    json!({ "queue": queue, "partition": partition, "payload": payload })
}
