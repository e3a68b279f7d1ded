//! Tasks on PostgreSQL.

use futures_util::FutureExt;
use uuid::Uuid;
use wakeline_bus::Write;

use super::PostgresStore;
use crate::{
    store::{Query, Row, StoreFuture, Tasks, only, values_of},
    task::{ClaimOutcome, NewTask, SubmitOutcome, Task, TaskUpdate, UpdateOutcome},
    topic::Wait,
    wakes,
};

impl Tasks for PostgresStore {
    fn submit(&self, task: NewTask) -> Write<SubmitOutcome> {
        let statement = "SELECT outcome, (task).*
            FROM wakeline.jobs_task_submit($1, $2, $3, $4, $5, $6, $7, $8)";
        let parameters = values_of![
            task.id,
            task.job.room,
            task.job.category,
            task.job.name,
            task.room,
            task.user,
            task.payload,
            task.needs_worker,
        ];
        self.call(statement, parameters, wakes::submitted, |rows| {
            let row = only(rows)?;
            Ok(match row.get("outcome") {
                0_i64 => SubmitOutcome::Done(Task::from_row(row)),
                1 => SubmitOutcome::NoJob,
                _ => SubmitOutcome::NoWorkers,
            })
        })
    }

    fn claim(&self, worker: Uuid, user: Uuid) -> Write<ClaimOutcome> {
        let statement = "SELECT outcome, jobs, (task).* FROM wakeline.jobs_task_claim($1, $2)";
        let parameters = values_of![worker, user];
        self.call(statement, parameters, wakes::claimed, |rows| {
            let row = only(rows)?;
            Ok(match row.get("outcome") {
                0_i64 => ClaimOutcome::Task(Task::from_row(row)),
                1 => ClaimOutcome::NoWorker,
                2 => ClaimOutcome::NotOwner,
                3 => ClaimOutcome::Nothing {
                    jobs: row.get("jobs"),
                },
                _ => ClaimOutcome::Busy,
            })
        })
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>> {
        let statement = "SELECT * FROM wakeline.jobs_task_unclaim($1, $2)";
        let parameters = values_of![task, worker];
        self.call(statement, parameters, wakes::unclaimed, |rows| {
            Ok(rows.first().map(Task::from_row))
        })
    }

    fn update(&self, update: TaskUpdate) -> Write<UpdateOutcome> {
        let statement = "SELECT outcome, orphan, (task).*
            FROM wakeline.jobs_task_update($1, $2, $3, $4, $5, $6)";
        let parameters = values_of![
            update.task,
            update.user,
            update.is_superuser,
            update.status as i64,
            update.error,
            update.worker,
        ];
        self.call(statement, parameters, wakes::updated, |rows| {
            let row = only(rows)?;
            Ok(match row.get("outcome") {
                0_i64 => UpdateOutcome::Done {
                    task: Task::from_row(row),
                    orphan: row.get("orphan"),
                },
                1 => UpdateOutcome::NotFound,
                2 => UpdateOutcome::NotClaimed,
                3 => UpdateOutcome::NotOwner,
                5 => UpdateOutcome::WrongWorker,
                _ => UpdateOutcome::NoSuchTransition(Task::from_row(row).status),
            })
        })
    }

    fn ready(&self, waits: Vec<Wait>) -> StoreFuture<'_, Vec<Wait>> {
        let (mut jobs, mut tasks, mut workers) = (Vec::new(), Vec::new(), Vec::new());
        for wait in &waits {
            match wait {
                Wait::Claim(job) => jobs.push(*job),
                Wait::Task(task) => tasks.push(*task),
                Wait::Worker(worker) => workers.push(*worker),
                _ => {}
            }
        }
        let statement = "SELECT 0 AS kind, id FROM unnest($1) AS waited (id) WHERE EXISTS (
                SELECT 1 FROM wakeline.jobs_task t WHERE t.job_id = waited.id AND t.status = 0
            )
            UNION ALL
            SELECT 1, id FROM unnest($2) AS waited (id) WHERE NOT EXISTS (
                SELECT 1 FROM wakeline.jobs_task t WHERE t.id = waited.id AND t.status < 3
            )
            UNION ALL
            SELECT 2, id FROM unnest($3) AS waited (id) WHERE NOT EXISTS (
                SELECT 1 FROM wakeline.jobs_worker w WHERE w.id = waited.id
            ) OR EXISTS (
                SELECT 1 FROM wakeline.jobs_link l
                JOIN wakeline.jobs_task p ON p.job_id = l.job_id
                WHERE l.worker_id = waited.id AND p.status = 0
            )";
        let rows = self.rows("recheck", statement, values_of![jobs, tasks, workers]);
        let read = |row: &Row| match row.get::<i64>("kind") {
            0 => Wait::Claim(row.get("id")),
            1 => Wait::Task(row.get("id")),
            _ => Wait::Worker(row.get("id")),
        };
        async move { Ok(rows.await?.iter().map(read).collect()) }.boxed()
    }
}
