//! The store of tasks.

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Query, Row, StoreFuture, page_of, values_of};
use crate::{
    page::{ListPage, Page},
    task::{ClaimOutcome, NewTask, SubmitOutcome, Task, TaskFilter, TaskUpdate, UpdateOutcome},
    topic::Wait,
};

pub(super) const TASK: &str = "SELECT * FROM wakeline.jobs_task_view WHERE id = $1";

/// Queue positions are counted from one task of the page to the next of the same job, not for each
/// task from the beginning.
const PAGE: &str = "WITH page AS (
        SELECT seq, job_id, status FROM wakeline.jobs_task
        WHERE room = $3 AND ($4 IS NULL OR job_id = $4) AND ($5 IS NULL OR status = $5)
        ORDER BY seq DESC LIMIT $1 OFFSET $2
    ), steps AS (
        SELECT p.job_id, p.seq, (
            SELECT count(*) FROM wakeline.jobs_task q
            WHERE q.job_id = p.job_id AND q.status = 0 AND q.seq <= p.seq AND q.seq > p.before
        ) AS more
        FROM (
            SELECT job_id, seq,
                coalesce(lag(seq) OVER (PARTITION BY job_id ORDER BY seq), 0) AS before
            FROM page WHERE status = 0
        ) p
    ), positions AS (
        SELECT seq, sum(more) OVER (PARTITION BY job_id ORDER BY seq) AS position FROM steps
    )
    SELECT t.*, j.room || ':' || j.category || ':' || j.name AS job_name,
        CAST(positions.position AS bigint) AS queue_position,
        (
            SELECT count(*) FROM wakeline.jobs_task
            WHERE room = $3 AND ($4 IS NULL OR job_id = $4) AND ($5 IS NULL OR status = $5)
        ) AS total
    FROM (SELECT 1) one
    LEFT JOIN page ON true
    LEFT JOIN wakeline.jobs_task t ON t.seq = page.seq
    LEFT JOIN wakeline.jobs_job j ON j.id = t.job_id
    LEFT JOIN positions ON positions.seq = page.seq
    ORDER BY t.seq DESC";

pub trait Tasks: Query {
    /// A repeat is refused by the database, because the task's id is given.
    fn submit(&self, task: NewTask) -> Write<SubmitOutcome>;

    /// Claims the task of the worker's jobs that has waited longest. Never waits for another claim.
    /// A repeat claims another task.
    fn claim(&self, worker: Uuid, user: Uuid) -> Write<ClaimOutcome>;

    /// Makes the task pending again at its queue position, if the worker still has it and has not
    /// begun with it. A retry that a loss would cost is not counted. A repeat changes nothing, unless
    /// the worker has claimed the task again meanwhile.
    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>>;

    /// A repeat is refused: no status leads to itself.
    fn update(&self, update: TaskUpdate) -> Write<UpdateOutcome>;

    /// Which of these waiters would find something; in one statement.
    fn ready(&self, waits: Vec<Wait>) -> StoreFuture<'_, Vec<Wait>>;

    fn task(&self, task: Uuid) -> StoreFuture<'_, Option<Task>> {
        let rows = self.rows("task", TASK, values_of![task]);
        async move { Ok(rows.await?.first().map(Task::from_row)) }.boxed()
    }

    /// Newest first.
    fn tasks(&self, filter: TaskFilter, page: Page) -> StoreFuture<'_, ListPage<Task>> {
        let status = filter.status.map(|status| status as i64);
        let parameters = values_of![page.limit, page.offset, filter.room, filter.job, status];
        let rows = self.rows("tasks", PAGE, parameters);
        async move { page_of(&rows.await?, Task::from_row) }.boxed()
    }
}

impl Task {
    /// From a row of `jobs_task_view`.
    pub(super) fn from_row(row: &Row) -> Self {
        Self {
            id: row.get("id"),
            job: row.get("job_id"),
            job_name: row.get("job_name"),
            room: row.get("room"),
            status: row.get("status"),
            created_at: row.get("created_at"),
            started_at: row.get("started_at"),
            completed_at: row.get("completed_at"),
            worker: row.get("worker_id"),
            error: row.get("error"),
            payload: row.get("payload"),
            queue_position: row.get("queue_position"),
        }
    }
}
