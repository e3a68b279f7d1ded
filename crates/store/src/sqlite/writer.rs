//! The writer: it runs the operations that have arrived in one transaction, commits, and answers.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Instant,
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::{
    STORE,
    disk_space::{DiskSpace, PageLimit, used_pages},
};
use crate::{error::Error, load::Meter, metrics};

/// Runs inside the transaction (not at all without one), and returns the function to call with the
/// commit's outcome.
type Job = Box<dyn FnOnce(Option<Transaction<'_>>) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;

#[derive(Clone, Copy)]
struct Transaction<'a> {
    connection: &'a Connection,
    /// While the disk is full.
    limit: Option<PageLimit>,
}

#[derive(Clone, Debug)]
pub(super) struct Writer {
    jobs: Sender<Job>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        (max_batch, max_pending): (usize, usize),
        meter: Arc<Meter>,
        disk: DiskSpace,
    ) -> Self {
        let (jobs, arriving) = bounded(max_pending);
        thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || run(&connection, &arriving, max_batch, &meter, disk))
            .expect("a thread can be started");
        Self { jobs }
    }

    pub(super) async fn submit<T, E>(
        &self,
        kind: &'static str,
        operation: impl FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |transaction| {
            let mut result: Option<Result<T, E>> = None;
            if let Some(transaction) = transaction {
                metrics::statements(STORE, kind, 1);
                let mut operation = Some(operation);
                let done = in_savepoint(transaction, &mut || {
                    let operation = operation.take();
                    result = operation.map(|operation| operation(transaction.connection));
                    matches!(result, Some(Ok(_)))
                });
                if let Err(error) = done {
                    result = Some(Err(error.into()));
                }
            }
            Box::new(move |committed| {
                let result = match (committed, result) {
                    (Err(error), _) => Err(error.into()),
                    (Ok(()), Some(result)) => result,
                    (Ok(()), None) => unreachable!("a commit has a transaction"),
                };
                // The caller may have hung up; the operation stays done.
                let _ = answer.send(result);
            })
        });
        self.send(job)?;
        answered
            .await
            .unwrap_or_else(|_| Err(Error::OutcomeUnknown("the writer has ended".into()).into()))
    }

    fn send(&self, job: Job) -> Result<(), Error> {
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => Error::Overloaded,
            TrySendError::Disconnected(_) => Error::Unavailable("the writer has ended".into()),
        })
    }
}

/// Runs `operation` in a savepoint, so that its failure, which is `false`, undoes its own changes
/// only. An error is of the savepoint itself, a panic, or more room than there is.
///
/// Not generic: each operation would have a copy of it.
fn in_savepoint(
    Transaction { connection, limit }: Transaction<'_>,
    operation: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let execute = |sql: &str| {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map_err(Error::from)
    };
    let limit = limit
        .map(|limit| Ok::<_, Error>((limit, used_pages(connection)?)))
        .transpose()?;
    execute("SAVEPOINT operation")?;
    // A panic must not end the writer, nor the other operations.
    let mut result = catch_unwind(AssertUnwindSafe(operation))
        .map_err(|_| Error::Failed("the operation panicked".into()));
    if result == Ok(true)
        && let Some((limit, before)) = limit
    {
        result = limit.check(connection, before).map(|()| true);
    }
    let kept_or_undone = result == Ok(true) || execute("ROLLBACK TO operation").is_ok();
    let is_released = kept_or_undone && execute("RELEASE operation").is_ok();
    if !is_released && !connection.is_autocommit() {
        // An operation that cannot be undone alone must not be committed with the others.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result.map(drop)
}

fn run(
    connection: &Connection,
    arriving: &Receiver<Job>,
    max_batch: usize,
    meter: &Meter,
    mut disk: DiskSpace,
) {
    let _connection = meter.connections(1);
    disk.make_reserve(connection);
    while let Some(first) = disk.next(connection, arriving) {
        let _at_work = meter.at_work();
        let began = Instant::now();
        let mut answers = Vec::new();
        let limit = disk.limit();
        let transaction = Transaction { connection, limit };
        let mut outcome = connection
            .execute_batch("BEGIN IMMEDIATE")
            .map_err(|error| Error::Unavailable(error.to_string()));
        let mut next = Some(first);
        while let Some(job) = next.take() {
            answers.push(job(outcome.is_ok().then_some(transaction)));
            // SQLite ends it by itself on a full disk, for example. The next operations must not
            // run: outside of a transaction they would stay, although their callers get an error.
            if outcome.is_ok() && connection.is_autocommit() {
                outcome = Err(rolled_back(connection, &mut disk));
            }
            if answers.len() < max_batch {
                next = arriving.try_recv().ok();
            }
        }
        if outcome.is_ok() {
            outcome = connection
                .execute_batch("COMMIT")
                .map_err(|error| commit_failed(connection, &error, &mut disk));
        }
        match &outcome {
            Ok(()) => disk.committed(connection),
            Err(error) => {
                tracing::error!(%error, operations = answers.len(), "a commit failed");
            }
        }
        metrics::batch(STORE, "commit", answers.len(), began.elapsed());
        for answer in answers {
            answer(outcome.clone());
        }
    }
}

/// The error of the operation that ended the transaction is its door's, and not known here.
fn rolled_back(connection: &Connection, disk: &mut DiskSpace) -> Error {
    const REASON: &str = "the transaction was rolled back";
    if disk.has_run_out(connection) {
        Error::disk_full(REASON)
    } else {
        Error::Unavailable(REASON.into())
    }
}

fn commit_failed(connection: &Connection, error: &rusqlite::Error, disk: &mut DiskSpace) -> Error {
    if !connection.is_autocommit() {
        let _ = connection.execute_batch("ROLLBACK");
        return Error::Unavailable(error.to_string());
    }
    if error.sqlite_error_code() == Some(ErrorCode::DiskFull) {
        // A part of the log could not be written. The mark of a commit is in its last part, so this
        // commit is not there after a crash either.
        disk.ran_out(connection);
        return Error::disk_full(error);
    }
    disk.has_run_out(connection);
    // The log could not be synced: after a crash its last commit may be there or not.
    Error::OutcomeUnknown(error.to_string())
}
