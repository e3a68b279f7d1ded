//! The held pops: one task each, which pops again after each answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use http::{Method, Uri};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wakeline_client::{Ack, AckResult, AckStatus, Message, PopRequest, PopResult};

use super::connections::{ConnectionPool, PopConnection};
use crate::connection::{Request, Response};
use crate::failures::Failures;

/// So long after the end of its hold a pop has failed.
const HOLD_MARGIN: Duration = Duration::from_secs(30);
const ACK_TIME: Duration = Duration::from_secs(30);
/// After a failure or an answer that came too early, so that a server in trouble is not hammered.
const PAUSE: Duration = Duration::from_secs(1);

/// The payload of each push: a number that identifies the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) n: u64,
}

/// One message that reached a waiter.
#[derive(Debug)]
pub(super) struct WakeAnswer {
    pub(super) at: Instant,
    pub(super) number: u64,
}

pub(super) struct Waiters {
    shared: Arc<SharedState>,
    tasks: JoinSet<()>,
    answers: mpsc::Receiver<WakeAnswer>,
}

/// The state that all waiters share.
struct SharedState {
    pool: ConnectionPool,
    timeout: Duration,
    auto_ack: bool,
    failures: Arc<Failures>,
    opened: AtomicUsize,
    early: AtomicUsize,
    leaving: AtomicBool,
    answers: mpsc::Sender<WakeAnswer>,
}

impl Waiters {
    /// One waiter for each of the queues.
    pub(super) fn start(
        pool: ConnectionPool,
        queues: impl ExactSizeIterator<Item = String>,
        timeout: Duration,
        auto_ack: bool,
        failures: Arc<Failures>,
    ) -> Self {
        // Room for an answer of each waiter, so that reporting an answer never delays the next pop.
        let (sender, answers) = mpsc::channel(queues.len());
        let shared = Arc::new(SharedState {
            pool,
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
            let waiter = Waiter::new(Arc::clone(&shared), index, queue);
            tasks.spawn(waiter.run());
        }
        Self {
            shared,
            tasks,
            answers,
        }
    }

    /// How many have their connection and have sent their first pop.
    pub(super) fn opened(&self) -> usize {
        self.shared.opened.load(Ordering::Relaxed)
    }

    /// How many pops were answered empty long before the hold was over: that server does not hold.
    pub(super) fn early(&self) -> usize {
        self.shared.early.load(Ordering::Relaxed)
    }

    /// From now on, a waiter that is answered does not pop again.
    pub(super) fn leave_when_answered(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
    }

    /// `None` when there was no answer by the deadline.
    pub(super) async fn answer_by(&mut self, deadline: Instant) -> Option<WakeAnswer> {
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
    shared: Arc<SharedState>,
    index: usize,
    path: Uri,
    connection: Option<PopConnection>,
    opened: bool,
}

impl Waiter {
    fn new(shared: Arc<SharedState>, index: usize, queue: String) -> Self {
        let pop = PopRequest {
            batch: Some(1),
            wait: true,
            timeout: Some(shared.timeout),
            auto_ack: shared.auto_ack,
            ..PopRequest::new(queue)
        };
        Self {
            path: shared.pool.node(index).path(&pop.path_and_query()),
            shared,
            index,
            connection: None,
            opened: false,
        }
    }

    async fn run(mut self) {
        loop {
            let sent = Instant::now();
            match self.pop().await {
                Ok(Some(answer)) => {
                    let leaving = self.shared.leaving.load(Ordering::Relaxed);
                    // Fails only when the run is over and the receiver is gone.
                    let _ = self.shared.answers.send(answer).await;
                    if leaving {
                        return;
                    }
                }
                Ok(None) if sent.elapsed() < self.shared.timeout / 2 => {
                    self.shared.early.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(None) => {}
                Err(error) => {
                    self.connection = None;
                    self.shared.failures.add_error("pop", &error);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn pop(&mut self) -> anyhow::Result<Option<WakeAnswer>> {
        let hold = self.shared.timeout + HOLD_MARGIN;
        let pop = Request::get(self.path.clone());
        let response = tokio::time::timeout(hold, self.send(pop))
            .await
            .context("no answer after the hold was over")??;
        let at = Instant::now();
        if response.body.is_empty() {
            return Ok(None);
        }
        let popped: PopResult = response.json().context("not the response of a pop")?;
        let Some(message) = popped.messages.first() else {
            return Ok(None);
        };
        let payload: Payload =
            serde_json::from_str(message.data.get()).context("not a message of this run")?;
        if !self.shared.auto_ack {
            self.ack(message).await?;
        }
        Ok(Some(WakeAnswer {
            at,
            number: payload.n,
        }))
    }

    async fn ack(&mut self, message: &Message) -> anyhow::Result<()> {
        let ack = serde_json::to_vec(&Ack::of(message, AckStatus::Completed))?;
        let path = self.shared.pool.node(self.index).path("/api/v1/ack");
        let ack = self.send(Request::new(Method::POST, path, ack));
        let response = tokio::time::timeout(ACK_TIME, ack)
            .await
            .context("no answer to an ack")??;
        let results: Vec<AckResult> = response.json().context("not the response of an ack")?;
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

    async fn send(&mut self, request: Request) -> anyhow::Result<Response> {
        let pool = &self.shared.pool;
        let connection = match &mut self.connection {
            Some(connection) if !connection.is_closed() => connection,
            connection => connection.insert(pool.connection(self.index).await?),
        };
        if !self.opened {
            self.opened = true;
            self.shared.opened.fetch_add(1, Ordering::Relaxed);
        }
        connection.send(pool.node(self.index), request).await
    }
}
