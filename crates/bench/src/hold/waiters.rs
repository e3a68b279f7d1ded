//! The held pops: one task each, which pops again when it was answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wakeline_client::{Ack, AckResult, AckStatus, Message, PopRequest, PopResult};

use super::link::{Link, Links};
use crate::failures::Failures;

/// Beyond the hold, before a pop counts as failed.
const HOLD_MARGIN: Duration = Duration::from_secs(30);
const ACK_TIME: Duration = Duration::from_secs(30);
/// After a failure or an answer that came too early, so that a server in trouble is not hammered.
const PAUSE: Duration = Duration::from_secs(1);

/// What the bench pushes: a number by which the answer is known.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) n: u64,
}

/// One message that reached a waiter.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) at: Instant,
    pub(super) number: u64,
}

pub(super) struct Waiters {
    crowd: Arc<Crowd>,
    tasks: JoinSet<()>,
    answers: mpsc::Receiver<Answer>,
}

/// What all waiters share.
struct Crowd {
    links: Links,
    timeout: Duration,
    auto_ack: bool,
    failures: Arc<Failures>,
    opened: AtomicUsize,
    early: AtomicUsize,
    leaving: AtomicBool,
    answers: mpsc::Sender<Answer>,
}

impl Waiters {
    /// One waiter for each of the queues.
    pub(super) fn start(
        links: Links,
        queues: impl ExactSizeIterator<Item = String>,
        timeout: Duration,
        auto_ack: bool,
        failures: Arc<Failures>,
    ) -> Self {
        // Room for an answer of everybody, so that reporting one never delays the next pop.
        let (sender, answers) = mpsc::channel(queues.len());
        let crowd = Arc::new(Crowd {
            links,
            timeout,
            auto_ack,
            failures,
            opened: AtomicUsize::new(0),
            early: AtomicUsize::new(0),
            leaving: AtomicBool::new(false),
            answers: sender,
        });
        let mut tasks = JoinSet::new();
        for (index, queue) in queues.enumerate() {
            let waiter = Waiter::new(Arc::clone(&crowd), index, queue);
            tasks.spawn(waiter.run());
        }
        Self {
            crowd,
            tasks,
            answers,
        }
    }

    /// How many have their connection and have sent their first pop.
    pub(super) fn opened(&self) -> usize {
        self.crowd.opened.load(Ordering::Relaxed)
    }

    /// Empty answers long before the hold was over: that server does not hold.
    pub(super) fn early(&self) -> usize {
        self.crowd.early.load(Ordering::Relaxed)
    }

    /// From now on, a waiter that is answered does not come again.
    pub(super) fn leave_when_answered(&self) {
        self.crowd.leaving.store(true, Ordering::Relaxed);
    }

    /// `None` when there was no answer by the deadline.
    pub(super) async fn answer_by(&mut self, deadline: Instant) -> Option<Answer> {
        tokio::time::timeout_at(deadline, self.answers.recv())
            .await
            .ok()
            .flatten()
    }

    pub(super) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

struct Waiter {
    crowd: Arc<Crowd>,
    index: usize,
    path: String,
    link: Option<Link>,
    opened: bool,
}

impl Waiter {
    fn new(crowd: Arc<Crowd>, index: usize, queue: String) -> Self {
        let pop = PopRequest {
            batch: Some(1),
            wait: true,
            timeout: Some(crowd.timeout),
            auto_ack: crowd.auto_ack,
            ..PopRequest::new(queue)
        };
        Self {
            path: pop.path_and_query(),
            crowd,
            index,
            link: None,
            opened: false,
        }
    }

    async fn run(mut self) {
        loop {
            let asked = Instant::now();
            match self.pop().await {
                Ok(Some(answer)) => {
                    let leaving = self.crowd.leaving.load(Ordering::Relaxed);
                    // Fails only when the run is over and nobody listens.
                    let _ = self.crowd.answers.send(answer).await;
                    if leaving {
                        return;
                    }
                }
                Ok(None) if asked.elapsed() < self.crowd.timeout / 2 => {
                    self.crowd.early.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(None) => {}
                Err(error) => {
                    self.link = None;
                    self.crowd.failures.add("pop", &format!("{error:#}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn pop(&mut self) -> anyhow::Result<Option<Answer>> {
        let hold = self.crowd.timeout + HOLD_MARGIN;
        let path = self.path.clone();
        let body = tokio::time::timeout(hold, self.send(Method::GET, &path, Bytes::new()))
            .await
            .context("no answer after the hold was over")??;
        let at = Instant::now();
        if body.is_empty() {
            return Ok(None);
        }
        let popped: PopResult = serde_json::from_slice(&body).context("the answer is no pop's")?;
        let Some(message) = popped.messages.first() else {
            return Ok(None);
        };
        let payload: Payload =
            serde_json::from_str(message.data.get()).context("a message of somebody else")?;
        if !self.crowd.auto_ack {
            self.ack(message).await?;
        }
        Ok(Some(Answer {
            at,
            number: payload.n,
        }))
    }

    async fn ack(&mut self, message: &Message) -> anyhow::Result<()> {
        let ack = serde_json::to_vec(&Ack::of(message, AckStatus::Completed))?;
        let sent = self.send(Method::POST, "/api/v1/ack", ack.into());
        let body = tokio::time::timeout(ACK_TIME, sent)
            .await
            .context("no answer to an ack")??;
        let results: Vec<AckResult> =
            serde_json::from_slice(&body).context("the answer is no ack's")?;
        let refused = results.iter().find(|result| !result.success);
        ensure!(
            refused.is_none(),
            "an ack was refused: {}",
            refused
                .and_then(|result| result.error.as_deref())
                .unwrap_or("no reason given")
        );
        Ok(())
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> anyhow::Result<Bytes> {
        let links = &self.crowd.links;
        let link = match &mut self.link {
            Some(link) if !link.is_closed() => link,
            link => link.insert(links.take(self.index).await?),
        };
        if !self.opened {
            self.opened = true;
            self.crowd.opened.fetch_add(1, Ordering::Relaxed);
        }
        link.send(links.node(self.index), method, path, body).await
    }
}
