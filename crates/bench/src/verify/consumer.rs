//! Consumers: long polls and short ones, acknowledged in every way there is, late or never.

mod acks;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, seq::IndexedRandom};
use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;
use wakeline_client::{Message, PopRequest, PopResult};

use super::history::{Delivery, MessageNumber, Time};
use super::run::{
    Caller, CallerRecord, LEASE, QUEUE_MODE, QUEUES, Run, address, groups, partition_of,
    partitions_of_queue,
};

const BATCHES: [u32; 6] = [1, 3, 10, 50, 200, 500];
const LONGEST_HOLD: u64 = 1_500;
/// Milliseconds after which the client of a long poll hangs up, at most.
const LONGEST_STAY: u64 = 300;
const DRAIN_BATCH: u32 = 1_000;
const DRAIN_HOLD: Duration = Duration::from_millis(500);
/// After the longest lease and the delay of a retry, no message can come any more.
const DRAINED_AFTER: Duration = Duration::from_millis(LEASE.as_millis() as u64 + 2_500);
/// Messages that are redelivered for so long are redelivered for ever.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Consumer {
    caller: Caller,
    record: CallerRecord,
    group: usize,
    queue: usize,
    first_strategies: Vec<acks::AckStrategy>,
}

/// The messages of one pop, with what acknowledging them takes.
#[derive(Debug)]
struct PoppedBatch {
    partition: usize,
    lease: u128,
    messages: Vec<(MessageNumber, Message)>,
}

#[derive(Deserialize)]
struct Payload {
    n: MessageNumber,
}

impl Consumer {
    pub(super) fn new(run: &Arc<Run>, group: usize, queue: usize, name: &str) -> Self {
        Self {
            caller: Caller::new(run, &format!("{name}-{group}-{queue}")),
            record: CallerRecord::default(),
            group,
            queue,
            first_strategies: Vec::new(),
        }
    }

    /// Pops and acknowledges until the run stops; the `index`th consumer of its queue and group.
    pub(super) async fn run(mut self, index: usize) -> CallerRecord {
        self.first_strategies = acks::first_strategies(index);
        while !self.caller.run.is_stopping() {
            let request = self.request();
            match self.pop(&request).await {
                Ok(Some(popped)) => self.acknowledge(popped).await,
                Ok(None) if request.wait => {}
                _ => self.caller.pause().await,
            }
        }
        self.record
    }

    /// Holds pops and hangs up on most of them.
    pub(super) async fn leave(mut self) -> CallerRecord {
        while !self.caller.run.is_stopping() {
            let request = PopRequest {
                wait: true,
                timeout: Some(Duration::from_millis(LONGEST_HOLD)),
                ..self.request()
            };
            let stay = Duration::from_millis(self.caller.random.random_range(1..LONGEST_STAY));
            match tokio::time::timeout(stay, self.pop(&request)).await {
                Ok(Ok(Some(popped))) => self.complete(popped).await,
                Ok(_) => self.caller.pause().await,
                Err(_) => {
                    self.caller.hang_up();
                    self.record.events.count("hang-ups");
                }
            }
        }
        self.record
    }

    /// Pops and completes the messages that are left, until none has come for longer than a lease.
    pub(super) async fn drain(mut self) -> CallerRecord {
        let request = PopRequest {
            batch: Some(DRAIN_BATCH),
            wait: true,
            timeout: Some(DRAIN_HOLD),
            ..self.any()
        };
        let mut seen = HashSet::new();
        let mut fresh = Instant::now();
        let mut busy = fresh;
        while busy.elapsed() < DRAINED_AFTER {
            if fresh.elapsed() > MAX_DRAIN_TIME {
                let endless = format!("{MAX_DRAIN_TIME:?} with nothing new and no end");
                self.caller.run.unexpected.add("drain", &endless);
                break;
            }
            match self.pop(&request).await {
                Ok(None) => continue,
                Ok(Some(popped)) => {
                    for (number, _) in &popped.messages {
                        if seen.insert(*number) {
                            fresh = Instant::now();
                        }
                    }
                    self.complete(popped).await;
                }
                Err(_) => self.caller.pause().await,
            }
            busy = Instant::now();
        }
        self.record
    }

    fn any(&self) -> PopRequest {
        let group = &groups()[self.group];
        PopRequest {
            group: (group.name != QUEUE_MODE).then(|| group.name.clone()),
            auto_ack: group.auto_ack,
            ..PopRequest::new(QUEUES[self.queue])
        }
    }

    fn request(&mut self) -> PopRequest {
        let request = self.any();
        let random = &mut self.caller.random;
        let partition = random.random_bool(0.3).then(|| {
            let partition = random.random_range(partitions_of_queue(self.queue));
            address(partition).1
        });
        let wait = random.random_bool(0.7);
        let hold = Duration::from_millis(random.random_range(100..LONGEST_HOLD));
        PopRequest {
            partition,
            batch: BATCHES.choose(random).copied(),
            wait,
            timeout: wait.then_some(hold),
            ..request
        }
    }

    /// `Err` when there was no answer: messages that it may have claimed come again after their lease.
    async fn pop(&mut self, request: &PopRequest) -> Result<Option<PoppedBatch>, ()> {
        let mut path = request.path_and_query();
        if request.group.is_some() {
            // Every group of the run reads from the beginning.
            path += "&subscriptionMode=all";
        }
        let begin = self.caller.run.now();
        let held = request.hold().unwrap_or_default();
        let response = self.caller.get(&path, held).await.map_err(|_| ())?;
        let end = self.caller.run.now();
        if response.body.is_empty() {
            return Ok(None);
        }
        match parse_pop(&response.body) {
            Ok(Some(popped)) => {
                self.delivered(&popped, begin, end);
                if request.auto_ack {
                    Ok(None)
                } else {
                    Ok(Some(popped))
                }
            }
            Ok(None) => Ok(None),
            Err(error) => {
                let text = format!("{error:#}: {}", response.describe());
                self.caller.run.unexpected.add("pop", &text);
                Err(())
            }
        }
    }

    fn delivered(&mut self, popped: &PoppedBatch, begin: Time, end: Time) {
        let auto_ack = groups()[self.group].auto_ack;
        let messages = popped.messages.iter();
        let delivery = Delivery {
            group: self.group,
            partition: popped.partition,
            begin,
            end,
            lease: (!auto_ack).then_some(popped.lease),
            messages: messages
                .map(|(number, message)| (*number, id(&message.id)))
                .collect(),
        };
        self.record.history.deliveries.push(delivery);
    }
}

fn parse_pop(body: &[u8]) -> anyhow::Result<Option<PoppedBatch>> {
    use anyhow::Context;

    let response: PopResult = serde_json::from_slice(body)?;
    if response.messages.is_empty() {
        return Ok(None);
    }
    let partition = partition_of(&response.queue, &response.partition)
        .context("not a partition of this run")?;
    let lease = response.lease_id.as_deref().map(id).unwrap_or_default();
    let messages = response.messages.into_iter().map(|message| {
        let payload: Payload = serde_json::from_str(message.data.get())?;
        Ok((payload.n, message))
    });
    Ok(Some(PoppedBatch {
        partition,
        lease,
        messages: messages.collect::<serde_json::Result<_>>()?,
    }))
}

fn id(text: &str) -> u128 {
    Uuid::parse_str(text).map_or_else(
        |_| {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            u128::from(hasher.finish())
        },
        |id| id.as_u128(),
    )
}
