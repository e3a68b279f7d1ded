//! Group commit: the operations of many callers at the same moment are one statement and one commit.

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

/// With this many operations, a second batch starts beside the first. With fewer it waits for the end
/// of the first, or for this time: two small batches cost almost twice as much as one.
const SECOND_BATCH_SIZE: usize = 16;
const SECOND_BATCH_WAIT: Duration = Duration::from_millis(2);
/// How often a batch is tried that loses against another node's (deadlock, serialization).
const ATTEMPTS: u32 = 5;
/// Times the number of the attempt.
const RACE_PAUSE: Duration = Duration::from_millis(10);

/// An operation's part of a batch.
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
    /// The answer does not fit the operations: a defect. It is not retried, because the statement has
    /// been committed.
    #[error("{0}")]
    Answer(String),
}

/// Runs a list of operations as one statement, and returns one result each, in order.
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

/// Takes operations of one kind: submit one, and await its own result.
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
    /// At most `workers` batches are under way at once; each takes all operations that have arrived.
    #[must_use]
    pub fn start(postgres: &Postgres, batch: B, workers: usize) -> Self {
        let (pending, arriving) = mpsc::channel(postgres.options().max_pending.max(1));
        let queue = Arc::new(Queue {
            arriving: Mutex::new(arriving),
            under_way: AtomicUsize::new(0),
            ended: Notify::new(),
        });
        let batch = Arc::new(batch);
        for _ in 0..workers.max(1) {
            tokio::spawn(work(postgres.clone(), batch.clone(), queue.clone()));
        }
        Self {
            pending,
            meter: postgres.meter().clone(),
        }
    }

    /// The operation runs even if the future is dropped; then its result is dropped.
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

/// The operations that wait for a worker, and the state that the workers share.
struct Queue<B: Batch> {
    arriving: Mutex<mpsc::Receiver<Pending<B>>>,
    under_way: AtomicUsize,
    /// A batch has ended.
    ended: Notify,
}

async fn work<B: Batch>(postgres: Postgres, batch: Arc<B>, queue: Arc<Queue<B>>) {
    // A session of its own: statements between a batch's BEGIN and COMMIT would belong to the batch.
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
        postgres.note_room(results.iter().map(|result| result.as_ref().err()));
        drop(at_work);
        queue.under_way.fetch_sub(1, Ordering::Relaxed);
        queue.ended.notify_one();
        for (answer, result) in answers.into_iter().zip(results) {
            let _ = answer.send(result);
        }
    }
}

impl<B: Batch> Queue<B> {
    /// The operations that have arrived, at least one, as many as fit one statement. They then count
    /// as under way.
    async fn next_batch(&self, max: usize) -> Option<Vec<Pending<B>>> {
        let mut arriving = self.arriving.lock().await;
        let first = arriving.recv().await?;
        let mut weight = first.0.weight();
        let mut pending = vec![first];
        let patience = sleep(SECOND_BATCH_WAIT);
        tokio::pin!(patience);
        loop {
            while weight < max
                && let Ok(next) = arriving.try_recv()
            {
                weight += next.0.weight();
                pending.push(next);
            }
            let is_alone = self.under_way.load(Ordering::Relaxed) == 0;
            if is_alone || pending.len() >= SECOND_BATCH_SIZE || weight >= max {
                break;
            }
            // `ended` remembers an end before this.
            tokio::select! {
                () = &mut patience => break,
                () = self.ended.notified() => {}
                next = arriving.recv() => {
                    let Some(next) = next else { break };
                    weight += next.0.weight();
                    pending.push(next);
                }
            }
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Some(pending)
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
    /// Runs the batch as one statement. When the database refuses it, each operation runs by
    /// itself, so that only the bad one fails. On a full disk too: the operations that need no
    /// space succeed.
    async fn run(&self, operations: &[B::Operation]) -> Vec<Result<B::Output, Error>> {
        match self.attempt(operations).await {
            Ok(outputs) => outputs.into_iter().map(Ok).collect(),
            Err(error) if operations.len() > 1 && is_of_one(&error) => {
                tracing::debug!(
                    kind = B::KIND,
                    %error,
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
            // Hundreds in a row must not each wait for a server that is away.
            if let Some(reason) = &outage {
                results.push(Err(Error::Unavailable(String::clone(reason))));
                continue;
            }
            let alone = self.attempt(std::slice::from_ref(operation)).await;
            outage = alone
                .as_ref()
                .err()
                .filter(|error| error.is_outage() && !is_of_one(error))
                .map(ToString::to_string);
            results.push(alone.map(|mut outputs| outputs.remove(0)));
        }
        results
    }

    /// `Failed` only if the database has rolled back: a statement that may have been committed must
    /// not be tried again.
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
                    // A retry at once would lock again before the winner has its lock.
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

/// Whether it is one operation's, and the others may succeed without it.
fn is_of_one(error: &Error) -> bool {
    matches!(error, Error::Failed(_)) || error.is_disk_full()
}

/// Rolled back in favour of another transaction: a retry is safe.
fn lost_a_race(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(code.code(), "40001" | "40P01"))
}
