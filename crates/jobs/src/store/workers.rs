//! The store of workers.

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Commit, Query, Row, StoreFuture, only, page_of, values_of, write};
use crate::{
    page::{ListPage, Page},
    task::{LostWorkers, SweepAges, SweepOutcome},
    wakes,
    worker::{OwnerOutcome, Worker, WorkerSummary},
};

pub(super) const CREATE: &str = "INSERT INTO wakeline.jobs_worker
        (id, user_id, beat_at, created_at)
    VALUES ($1, $2, {now}, {now}) RETURNING *";

const ALL: &str = "SELECT w.*,
        (SELECT count(*) FROM wakeline.jobs_link l WHERE l.worker_id = w.id) AS job_count,
        (SELECT count(*) FROM wakeline.jobs_worker) AS total
    FROM (SELECT 1) one LEFT JOIN (
        SELECT * FROM wakeline.jobs_worker
        ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
    ) w ON true ORDER BY w.created_at DESC, w.id";

const OF_SCOPES: &str = "WITH listed AS (
        SELECT w.* FROM wakeline.jobs_worker w
        WHERE EXISTS (
            SELECT 1 FROM wakeline.jobs_link l JOIN wakeline.jobs_job j ON j.id = l.job_id
            WHERE l.worker_id = w.id AND j.room {in $3} AND NOT j.is_deleted
        )
    )
    SELECT w.*,
        (SELECT count(*) FROM wakeline.jobs_link l WHERE l.worker_id = w.id) AS job_count,
        (SELECT count(*) FROM listed) AS total
    FROM (SELECT 1) one LEFT JOIN (
        SELECT * FROM listed ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
    ) w ON true ORDER BY w.created_at DESC, w.id";

pub trait Workers: Query {
    /// A repeat creates another worker.
    fn create_worker(&self, user: Uuid) -> Write<Worker> {
        let parameters = values_of![Uuid::new_v4(), user];
        let commit = Commit::Shared("create_worker");
        write(self, commit, CREATE, parameters, wakes::nobody, |rows| {
            only(rows).map(Worker::from_row)
        })
    }

    /// Only a worker's owner sends heartbeats for it. A repeat is another heartbeat.
    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<OwnerOutcome<Worker>>;

    /// A heartbeat of each of these workers, in one statement. A worker that was removed meanwhile
    /// stays removed. A repeat is another heartbeat.
    fn heartbeats(&self, workers: Vec<Uuid>) -> Write<()>;

    /// Removes a worker with everything that it has: its tasks fail or become pending again, and its
    /// providers are removed. With `user`, only a worker of theirs. A repeat finds no worker.
    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<LostWorkers>>;

    /// Removes a slice of lost workers and old tasks, when something is due and not at an interval.
    /// A repeat goes on with the next slice.
    fn sweep(&self, terms: SweepAges) -> Write<SweepOutcome>;

    fn worker_owner(&self, worker: Uuid) -> StoreFuture<'_, Option<Uuid>> {
        let statement = "SELECT user_id FROM wakeline.jobs_worker WHERE id = $1";
        let rows = self.rows("worker_owner", statement, values_of![worker]);
        async move { Ok(rows.await?.first().map(|row| row.get("user_id"))) }.boxed()
    }

    /// Newest first.
    fn workers(&self, page: Page) -> StoreFuture<'_, ListPage<WorkerSummary>> {
        let rows = self.rows("workers", ALL, values_of![page.limit, page.offset]);
        async move { page_of(&rows.await?, WorkerSummary::from_row) }.boxed()
    }

    /// The workers with jobs of one of the scopes, newest first.
    fn workers_of(
        &self,
        scopes: Vec<String>,
        page: Page,
    ) -> StoreFuture<'_, ListPage<WorkerSummary>> {
        let parameters = values_of![page.limit, page.offset, scopes];
        let rows = self.rows("workers", OF_SCOPES, parameters);
        async move { page_of(&rows.await?, WorkerSummary::from_row) }.boxed()
    }
}

impl Worker {
    /// From a row with the columns of `jobs_worker`.
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            id: row.get("id"),
            last_heartbeat: row.get("beat_at"),
        }
    }
}

impl WorkerSummary {
    fn from_row(row: &Row) -> Self {
        Self {
            worker: Worker::from_row(row),
            job_count: row.get("job_count"),
        }
    }
}
