//! Group commit: what many callers ask for in the same moment is one statement and one commit.

use std::{sync::Arc, time::Instant};

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_postgres::Client;

use super::{Postgres, STORE, explain};
use crate::{error::Error, telling};

/// How often a batch that lost against another node's (deadlock, serialization) is tried.
const ATTEMPTS: usize = 5;

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
    /// The answer does not fit the question: a defect, reported and not retried.
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
}

impl<B: Batch> Clone for Batcher<B> {
    fn clone(&self) -> Self {
        Self {
            pending: self.pending.clone(),
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
        let (pending, arriving) = mpsc::channel(postgres.options().max_pending);
        let arriving = Arc::new(Mutex::new(arriving));
        let batch = Arc::new(batch);
        for _ in 0..workers.max(1) {
            tokio::spawn(work(postgres.clone(), batch.clone(), arriving.clone()));
        }
        Self { pending }
    }

    /// It runs even if the caller is dropped meanwhile; the result is then dropped.
    pub async fn submit(&self, operation: B::Operation) -> Result<B::Output, Error> {
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

async fn work<B: Batch>(
    postgres: Postgres,
    batch: Arc<B>,
    arriving: Arc<Mutex<mpsc::Receiver<Pending<B>>>>,
) {
    let session = postgres.session();
    loop {
        let Some(pending) = gather::<B>(&arriving, postgres.options().max_batch).await else {
            return;
        };
        let (operations, answers): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
        let results = match session.client().await {
            Ok(client) => run(&*batch, &client, &operations).await,
            Err(error) => operations.iter().map(|_| Err(error.clone())).collect(),
        };
        for (answer, result) in answers.into_iter().zip(results) {
            let _ = answer.send(result);
        }
    }
}

/// All that has arrived, at least one, as far as it fits one statement.
async fn gather<B: Batch>(
    arriving: &Mutex<mpsc::Receiver<Pending<B>>>,
    max: usize,
) -> Option<Vec<Pending<B>>> {
    let mut arriving = arriving.lock().await;
    let first = arriving.recv().await?;
    let mut weight = first.0.weight();
    let mut gathered = vec![first];
    while weight < max
        && let Ok(next) = arriving.try_recv()
    {
        weight += next.0.weight();
        gathered.push(next);
    }
    Some(gathered)
}

/// The batch as one statement. When the database refuses it, each operation by itself, so that
/// only the bad one fails.
async fn run<B: Batch>(
    batch: &B,
    client: &Client,
    operations: &[B::Operation],
) -> Vec<Result<B::Output, Error>> {
    match attempt(batch, client, operations).await {
        Ok(outputs) => outputs.into_iter().map(Ok).collect(),
        Err(Error::Failed(reason)) if operations.len() > 1 => {
            tracing::debug!(
                kind = B::KIND,
                reason,
                "a batch was refused; trying one by one"
            );
            let mut results = Vec::with_capacity(operations.len());
            for operation in operations {
                let alone = attempt(batch, client, std::slice::from_ref(operation)).await;
                results.push(alone.map(|mut outputs| outputs.remove(0)));
            }
            results
        }
        Err(error) => operations.iter().map(|_| Err(error.clone())).collect(),
    }
}

async fn attempt<B: Batch>(
    batch: &B,
    client: &Client,
    operations: &[B::Operation],
) -> Result<Vec<B::Output>, Error> {
    for tried in 1.. {
        let began = Instant::now();
        telling::statements(STORE, B::KIND, 1);
        let outcome = batch.run(client, operations).await;
        telling::batch(STORE, B::KIND, operations.len(), began.elapsed());
        match outcome {
            Ok(outputs) if outputs.len() == operations.len() => return Ok(outputs),
            Ok(outputs) => {
                return Err(Error::Failed(format!(
                    "{} results for {} operations",
                    outputs.len(),
                    operations.len()
                )));
            }
            Err(RunError::Answer(text)) => return Err(Error::Failed(text)),
            Err(RunError::Driver(error)) if tried < ATTEMPTS && lost_a_race(&error) => {}
            Err(RunError::Driver(error)) => return Err(explain(&error)),
        }
    }
    unreachable!("the last attempt returns")
}

/// Rolled back in favour of another transaction: doing it again is safe and right.
fn lost_a_race(error: &tokio_postgres::Error) -> bool {
    error
        .code()
        .is_some_and(|code| matches!(code.code(), "40001" | "40P01"))
}
