//! Group commit: what many callers ask for in the same moment is one statement and one commit.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{Mutex, Notify, mpsc, oneshot},
    time::{sleep, timeout},
};
use tokio_postgres::Client;

use super::{Postgres, STORE, Session, explain};
use crate::{error::Error, load::Meter, metrics};

/// With so many operations gathered, a batch begins beside one that is under way. With fewer it waits
/// for that one's end, for a moment: two small batches cost almost twice what one does.
const SECOND_BATCH_SIZE: usize = 16;
const SECOND_BATCH_WAIT: Duration = Duration::from_millis(2);
/// How often a batch that lost against another node's (deadlock, serialization) is tried.
const ATTEMPTS: u32 = 5;
/// Times the number of the attempt.
const RACE_PAUSE: Duration = Duration::from_millis(10);

/// How much of a batch an operation takes up.
pub trait Weigh {
    fn weight(&self) -> usize {
        1
    }
}

/// Why a whole batch failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Driver(#[from] tokio_postgres::Error),
    /// The answer does not fit the question: a defect, reported and not retried, for the statement
    /// has been committed.
    #[error("{0}")]
    Answer(String),
}

/// Runs a list of operations as one statement; gives one result each, in order.
pub trait Batch: Send + Sync + 'static {
    type Operation: Weigh + Clone + Send + Sync + 'static;
    type Output: Send + 'static;

    /// For the metrics.
    const KIND: &'static str;

    fn run<'a>(
        &'a self,
        client: &'a Client,
        operations: &'a [Self::Operation],
    ) -> BoxFuture<'a, Result<Vec<Self::Output>, RunError>>;
}

type Pending<B> = (
    <B as Batch>::Operation,
    oneshot::Sender<Result<<B as Batch>::Output, Error>>,
);

/// The front of a kind of operation: submit one, await its own result.
pub struct Batcher<B: Batch> {
    pending: mpsc::Sender<Pending<B>>,
    meter: Arc<Meter>,
}

impl<B: Batch> Clone for Batcher<B> {
    fn clone(&self) -> Self {
        Self {
            pending: self.pending.clone(),
            meter: self.meter.clone(),
        }
    }
}

impl<B: Batch> std::fmt::Debug for Batcher<B> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Batcher").field("kind", &B::KIND).finish()
    }
}

impl<B: Batch> Batcher<B> {
    /// `workers` batches may be under way at once; each takes all that has arrived when it is free.
    #[must_use]
    pub fn start(postgres: &Postgres, batch: B, workers: usize) -> Self {
        let (pending, arriving) = mpsc::channel(postgres.options().max_pending.max(1));
        let line = Arc::new(Queue {
            arriving: Mutex::new(arriving),
            under_way: AtomicUsize::new(0),
            ended: Notify::new(),
        });
        let batch = Arc::new(batch);
        for _ in 0..workers.max(1) {
            tokio::spawn(work(postgres.clone(), batch.clone(), line.clone()));
        }
        Self {
            pending,
            meter: postgres.meter().clone(),
        }
    }

    /// It runs even if the caller is dropped meanwhile; the result is then dropped.
    pub async fn submit(&self, operation: B::Operation) -> Result<B::Output, Error> {
        self.meter.count_failure(self.run(operation).await)
    }

    async fn run(&self, operation: B::Operation) -> Result<B::Output, Error> {
        let (answer, answered) = oneshot::channel();
        self.pending
            .try_send((operation, answer))
            .map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => Error::Overloaded,
                mpsc::error::TrySendError::Closed(_) => {
                    Error::Unavailable("the store has been closed".into())
                }
            })?;
        answered
            .await
            .unwrap_or_else(|_| Err(Error::OutcomeUnknown("the store has been closed".into())))
    }
}

/// What the workers of a kind share.
struct Queue<B: Batch> {
    arriving: Mutex<mpsc::Receiver<Pending<B>>>,
    under_way: AtomicUsize,
    /// A batch has ended.
    ended: Notify,
}

async fn work<B: Batch>(postgres: Postgres, batch: Arc<B>, queue: Arc<Queue<B>>) {
    // Its own: what is sent between a batch's BEGIN and its COMMIT belongs to the batch.
    let session = Session::new(postgres.connector().for_batches());
    let _connection = postgres.meter().connections(1);
    loop {
        let Some(pending) = queue.next_batch(postgres.options().max_batch).await else {
            return;
        };
        let at_work = postgres.meter().at_work();
        let (operations, answers): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
        let results = match session.client().await {
            Ok(client) => {
                let runner = Runner {
                    batch: &*batch,
                    session: &session,
                    client: &client,
                    patience: postgres.options().patience(),
                };
                runner.run(&operations).await
            }
            Err(error) => operations.iter().map(|_| Err(error.clone())).collect(),
        };
        drop(at_work);
        queue.under_way.fetch_sub(1, Ordering::Relaxed);
        queue.ended.notify_one();
        for (answer, result) in answers.into_iter().zip(results) {
            let _ = answer.send(result);
        }
    }
}

impl<B: Batch> Queue<B> {
    /// All that has arrived, at least one, as far as it fits one statement. It then counts as under
    /// way.
    async fn next_batch(&self, max: usize) -> Option<Vec<Pending<B>>> {
        let mut arriving = self.arriving.lock().await;
        let first = arriving.recv().await?;
        let mut weight = first.0.weight();
        let mut gathered = vec![first];
        let patience = sleep(SECOND_BATCH_WAIT);
        tokio::pin!(patience);
        loop {
            while weight < max
                && let Ok(next) = arriving.try_recv()
            {
                weight += next.0.weight();
                gathered.push(next);
            }
            let is_alone = self.under_way.load(Ordering::Relaxed) == 0;
            if is_alone || gathered.len() >= SECOND_BATCH_SIZE || weight >= max {
                break;
            }
            // An end before this is remembered, so that it is not waited for in vain.
            tokio::select! {
                () = &mut patience => break,
                () = self.ended.notified() => {}
                next = arriving.recv() => {
                    let Some(next) = next else { break };
                    weight += next.0.weight();
                    gathered.push(next);
                }
            }
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Some(gathered)
    }
}

/// One batch on one connection.
struct Runner<'a, B> {
    batch: &'a B,
    session: &'a Session,
    client: &'a Arc<Client>,
    patience: Duration,
}

impl<B: Batch> Runner<'_, B> {
    /// The batch as one statement. When the database refuses it, each operation by itself, so that
    /// only the bad one fails.
    async fn run(&self, operations: &[B::Operation]) -> Vec<Result<B::Output, Error>> {
        match self.attempt(operations).await {
            Ok(outputs) => outputs.into_iter().map(Ok).collect(),
            Err(Error::Failed(reason)) if operations.len() > 1 => {
                tracing::debug!(
                    kind = B::KIND,
                    reason,
                    "a batch was refused; trying one by one"
                );
                self.one_by_one(operations).await
            }
            Err(error) => operations.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn one_by_one(&self, operations: &[B::Operation]) -> Vec<Result<B::Output, Error>> {
        let mut results = Vec::with_capacity(operations.len());
        let mut outage = None;
        for operation in operations {
            // Hundreds in a row must not each wait for a server that has gone.
            if let Some(reason) = &outage {
                results.push(Err(Error::Unavailable(String::clone(reason))));
                continue;
            }
            let alone = self.attempt(std::slice::from_ref(operation)).await;
            outage = alone
                .as_ref()
                .err()
                .filter(|error| error.is_outage())
                .map(ToString::to_string);
            results.push(alone.map(|mut outputs| outputs.remove(0)));
        }
        results
    }

    /// `Failed` only where the database has rolled back: whatever may have been committed must not
    /// be tried again.
    async fn attempt(&self, operations: &[B::Operation]) -> Result<Vec<B::Output>, Error> {
        for tried in 1.. {
            let began = Instant::now();
            metrics::statements(STORE, B::KIND, 1);
            let running = AssertUnwindSafe(self.batch.run(self.client, operations)).catch_unwind();
            let outcome = timeout(self.patience, running).await;
            metrics::batch(STORE, B::KIND, operations.len(), began.elapsed());
            match outcome {
                Ok(Ok(Ok(outputs))) if outputs.len() == operations.len() => return Ok(outputs),
                Ok(Ok(Ok(outputs))) => {
                    return Err(Error::OutcomeUnknown(format!(
                        "{} results for {} operations",
                        outputs.len(),
                        operations.len()
                    )));
                }
                Ok(Ok(Err(RunError::Answer(text)))) => return Err(Error::OutcomeUnknown(text)),
                Ok(Ok(Err(RunError::Driver(error)))) if tried < ATTEMPTS && lost_a_race(&error) => {
                    // At once it would be back before the winner has taken what it waits for.
                    let jitter = rand::random_range(0.5..1.5);
                    sleep((RACE_PAUSE * tried).mul_f64(jitter)).await;
                }
                Ok(Ok(Err(RunError::Driver(error)))) => return Err(explain(&error)),
                Ok(Err(_)) => return Err(Error::OutcomeUnknown("the batch panicked".into())),
                Err(_) => return Err(self.session.give_up(self.client).await),
            }
        }
        unreachable!("the last attempt returns")
    }
}

/// Rolled back in favour of another transaction: doing it again is safe and right.
fn lost_a_race(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(code.code(), "40001" | "40P01"))
}
