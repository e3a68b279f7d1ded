//! Consumers: long polls and short ones, acknowledging in every way there is, late or never.

mod settle;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use rand::{RngExt, seq::IndexedRandom};
use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;
use wakeline_client::{Message, PopRequest, PopResult};

use super::history::{Delivery, Number, Time};
use super::run::{
    Caller, LEASE, QUEUE_MODE, QUEUES, Record, Run, address, groups, place_of, places_of_queue,
};

const BATCHES: [u32; 6] = [1, 3, 10, 50, 200, 500];
const LONGEST_HOLD: u64 = 1_500;
/// A long poll's client is gone after so long at most.
const LONGEST_STAY: u64 = 300;
const DRAIN_BATCH: u32 = 1_000;
const DRAIN_HOLD: Duration = Duration::from_millis(500);
/// After the longest lease and the delay of a retry, nothing more can come.
const QUIET: Duration = Duration::from_millis(LEASE.as_millis() as u64 + 2_500);
/// What comes again and again for so long comes for ever.
const DRAIN_TIME: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Consumer {
    caller: Caller,
    record: Record,
    group: usize,
    queue: usize,
    first_ways: Vec<settle::Way>,
}

/// What a pop got, with what it takes to acknowledge it.
#[derive(Debug)]
struct Taken {
    place: usize,
    lease: u128,
    messages: Vec<(Number, Message)>,
}

#[derive(Deserialize)]
struct Payload {
    n: Number,
}

impl Consumer {
    pub(super) fn new(run: &Arc<Run>, group: usize, queue: usize, name: &str) -> Self {
        Self {
            caller: Caller::new(run, &format!("{name}-{group}-{queue}")),
            record: Record::default(),
            group,
            queue,
            first_ways: Vec::new(),
        }
    }

    /// Pops and settles until the run stops; the `index`th of its queue and group.
    pub(super) async fn run(mut self, index: usize) -> Record {
        self.first_ways = settle::first_ways(index);
        while !self.caller.run.is_stopping() {
            let request = self.request();
            match self.pop(&request).await {
                Ok(Some(taken)) => self.settle(taken).await,
                Ok(None) if request.wait => {}
                _ => self.caller.pause().await,
            }
        }
        self.record
    }

    /// Holds pops and hangs up on most of them.
    pub(super) async fn leave(mut self) -> Record {
        while !self.caller.run.is_stopping() {
            let request = PopRequest {
                wait: true,
                timeout: Some(Duration::from_millis(LONGEST_HOLD)),
                ..self.request()
            };
            let stay = Duration::from_millis(self.caller.random.random_range(1..LONGEST_STAY));
            match tokio::time::timeout(stay, self.pop(&request)).await {
                Ok(Ok(Some(taken))) => self.complete(taken).await,
                Ok(_) => self.caller.pause().await,
                Err(_) => {
                    self.caller.hang_up();
                    self.record.tally.count("hang-ups");
                }
            }
        }
        self.record
    }

    /// Takes and completes what is left, until nothing has come for longer than a lease.
    pub(super) async fn drain(mut self) -> Record {
        let request = PopRequest {
            batch: Some(DRAIN_BATCH),
            wait: true,
            timeout: Some(DRAIN_HOLD),
            ..self.any()
        };
        let mut seen = HashSet::new();
        let mut fresh = Instant::now();
        let mut busy = fresh;
        while busy.elapsed() < QUIET {
            if fresh.elapsed() > DRAIN_TIME {
                // The checker says what is wrong with that.
                let endless = format!("{DRAIN_TIME:?} with nothing new and no end");
                self.caller.run.unexpected.add("drain", &endless);
                break;
            }
            match self.pop(&request).await {
                Ok(None) => continue,
                Ok(Some(taken)) => {
                    for (number, _) in &taken.messages {
                        if seen.insert(*number) {
                            fresh = Instant::now();
                        }
                    }
                    self.complete(taken).await;
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
            let place = random.random_range(places_of_queue(self.queue));
            address(place).1
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

    /// `Err` when there was no answer: what it may have claimed comes again after its lease.
    async fn pop(&mut self, request: &PopRequest) -> Result<Option<Taken>, ()> {
        let mut path = request.path_and_query();
        if request.group.is_some() {
            // Every group of the run reads from the beginning.
            path += "&subscriptionMode=all";
        }
        let begin = self.caller.run.now();
        let held = request.hold().unwrap_or_default();
        let answer = self.caller.get(&path, held).await.map_err(|_| ())?;
        let end = self.caller.run.now();
        if answer.body.is_empty() {
            return Ok(None);
        }
        match taken(&answer.body) {
            Ok(Some(taken)) => {
                self.delivered(&taken, begin, end);
                if request.auto_ack {
                    Ok(None)
                } else {
                    Ok(Some(taken))
                }
            }
            Ok(None) => Ok(None),
            Err(error) => {
                let text = format!("{error:#}: {}", answer.shown());
                self.caller.run.unexpected.add("pop", &text);
                Err(())
            }
        }
    }

    fn delivered(&mut self, taken: &Taken, begin: Time, end: Time) {
        let auto_ack = groups()[self.group].auto_ack;
        let messages = taken.messages.iter();
        let delivery = Delivery {
            group: self.group,
            place: taken.place,
            begin,
            end,
            lease: (!auto_ack).then_some(taken.lease),
            messages: messages
                .map(|(number, message)| (*number, id(&message.id)))
                .collect(),
        };
        self.record.history.deliveries.push(delivery);
    }
}

fn taken(body: &[u8]) -> anyhow::Result<Option<Taken>> {
    use anyhow::Context;

    let popped: PopResult = serde_json::from_slice(body)?;
    if popped.messages.is_empty() {
        return Ok(None);
    }
    let place = place_of(&popped.queue, &popped.partition).context("no place of this run")?;
    let lease = popped.lease_id.as_deref().map(id).unwrap_or_default();
    let messages = popped.messages.into_iter().map(|message| {
        let payload: Payload = serde_json::from_str(message.data.get())?;
        Ok((payload.n, message))
    });
    Ok(Some(Taken {
        place,
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
