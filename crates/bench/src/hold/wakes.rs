//! Pushing, and timing the answers.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;
use wakeline_client::{Client, PushItem, PushStatus};

use super::waiters::{Payload, Waiters};
use super::{Queues, Topics};
use crate::failures::Failures;

/// A message that has not reached its waiter by then counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(30);
/// Between two wakes, so that the answered waiter is back and the machine at rest.
const PAUSE: Duration = Duration::from_millis(10);
const BATCH: usize = 100;
const PUSHES_AT_ONCE: usize = 4;
/// When all waiters are woken, the run ends so long after the last answer.
const ALL_LOST_AFTER: Duration = Duration::from_secs(30);

/// Times of single wakes, each on an otherwise idle server.
#[derive(Debug, Default)]
pub(super) struct WakeTimes {
    /// From the push's first byte out to the pop's last byte in.
    pub(super) from_sent: Vec<Duration>,
    /// From the push's answer; nothing when the pop was answered first.
    pub(super) from_pushed: Vec<Duration>,
    /// How many pops were answered before their push.
    pub(super) before_pushed: usize,
}

/// A wake of all waiters at once.
#[derive(Debug)]
pub(super) struct WakeAll {
    pub(super) answered: usize,
    pub(super) push_time: Duration,
    /// From the first push to the last answer.
    pub(super) time: Duration,
}

pub(super) struct Pusher<'a> {
    pub(super) client: &'a Client,
    pub(super) queues: &'a Queues,
    pub(super) failures: &'a Failures,
}

impl Pusher<'_> {
    /// Opens the connection, which the first wake would pay for otherwise. A failure shows with the
    /// first real push.
    pub(super) async fn warm_up(&self) {
        let _ = self.client.push(&[]).await;
    }

    pub(super) async fn wake_one_by_one(&self, waiters: &mut Waiters, wakes: usize) -> WakeTimes {
        let mut times = WakeTimes::default();
        let stride = (self.queues.waiters / wakes.max(1)).max(1);
        for wake in 0..wakes {
            let number = wake as u64;
            let item = item(
                self.queues.name(wake * stride % self.queues.waiters),
                number,
            );
            let sent = Instant::now();
            if self.push(&[item]).await == 0 {
                continue;
            }
            let pushed = Instant::now();
            let Some(answered) = answer_to(waiters, number, pushed + LOST_AFTER).await else {
                self.add_lost(1);
                continue;
            };
            times.from_sent.push(answered - sent);
            times
                .from_pushed
                .push(answered.saturating_duration_since(pushed));
            times.before_pushed += usize::from(answered < pushed);
            tokio::time::sleep(PAUSE).await;
        }
        times
    }

    pub(super) async fn wake_all(&self, waiters: &mut Waiters, first_number: u64) -> WakeAll {
        waiters.leave_when_answered();
        let items: Vec<PushItem> = (0..self.queues.waiters)
            .map(|waiter| {
                let number = first_number + waiter as u64;
                let item = item(self.queues.name(waiter), number);
                match self.queues.topics {
                    // In one partition, a lease on the first message would hold back the rest.
                    Topics::One => item.partition(format!("p{waiter}")),
                    Topics::Each => item,
                }
            })
            .collect();
        let start = Instant::now();
        let pushed: usize = futures_util::stream::iter(items.chunks(BATCH))
            .map(|batch| self.push(batch))
            .buffer_unordered(PUSHES_AT_ONCE)
            .fold(0, async |sum, pushed| sum + pushed)
            .await;
        let push_time = start.elapsed();

        let mut last = Instant::now();
        let mut answered = vec![false; self.queues.waiters];
        let mut count = 0;
        let mut time = Duration::ZERO;
        while count < pushed {
            let Some(answer) = waiters.answer_by(last + ALL_LOST_AFTER).await else {
                break;
            };
            let waiter = answer.number.checked_sub(first_number);
            if let Some(slot) = waiter.and_then(|waiter| answered.get_mut(waiter as usize))
                && !std::mem::replace(slot, true)
            {
                count += 1;
                time = time.max(answer.at - start);
            }
            last = Instant::now();
        }
        self.add_lost(pushed - count);
        WakeAll {
            answered: count,
            push_time,
            time,
        }
    }

    fn add_lost(&self, messages: usize) {
        for _ in 0..messages {
            let failure = "a message that was pushed reached no waiter";
            self.failures.add("wake", &failure);
        }
    }

    /// How many of the items are in their queues now.
    async fn push(&self, items: &[PushItem]) -> usize {
        let results = self.client.push(items).await.unwrap_or_else(|error| {
            self.failures.add("push", &error);
            Vec::new()
        });
        let mut queued = 0;
        for item in results {
            if item.status == PushStatus::Queued {
                queued += 1;
            } else {
                let reason = item.error.as_deref().unwrap_or("no reason given");
                let failure = format!("{:?}: {reason}", item.status);
                self.failures.add("push", &failure);
            }
        }
        queued
    }
}

fn item(queue: String, number: u64) -> PushItem {
    PushItem::new(queue, &Payload { n: number }).expect("a number is JSON")
}

/// Passes over answers to earlier pushes that had been given up.
async fn answer_to(waiters: &mut Waiters, number: u64, deadline: Instant) -> Option<Instant> {
    loop {
        let answer = waiters.answer_by(deadline).await?;
        if answer.number == number {
            return Some(answer.at);
        }
    }
}
