//! Tasks on SQLite.

use rusqlite::{named_params, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, Session, SqliteStore, workers};
use crate::{
    name::FullName,
    store::{StoreFuture, Tasks, only, tasks::TASK, values_of},
    task::{ClaimOutcome, NewTask, Status, SubmitOutcome, Task, TaskUpdate, UpdateOutcome},
    topic::Wait,
    wakes,
};

impl Tasks for SqliteStore {
    fn submit(&self, task: NewTask) -> Write<SubmitOutcome> {
        self.write("submit", wakes::submitted, move |session| {
            submit(session, &task)
        })
    }

    fn claim(&self, worker: Uuid, user: Uuid) -> Write<ClaimOutcome> {
        self.write("claim", wakes::claimed, move |session| {
            claim(session, worker, user)
        })
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>> {
        self.write("unclaim", wakes::unclaimed, move |session| {
            let sql = "UPDATE jobs_task SET status = 0, worker_id = NULL
                WHERE id = ?1 AND worker_id = ?2 AND status = 1";
            match session.execute(sql, [task, worker])? {
                0 => Ok(None),
                _ => one(session, task).map(Some),
            }
        })
    }

    fn update(&self, update: TaskUpdate) -> Write<UpdateOutcome> {
        self.write("update", wakes::updated, move |session| {
            change(session, &update)
        })
    }

    fn ready(&self, waits: Vec<Wait>) -> StoreFuture<'_, Vec<Wait>> {
        self.read("recheck", move |session| {
            let mut ready = Vec::new();
            for wait in waits {
                let (sql, id) = match &wait {
                    Wait::Claim(job) => (
                        "SELECT EXISTS (SELECT 1 FROM jobs_task WHERE job_id = ?1 AND status = 0)",
                        job,
                    ),
                    Wait::Worker(worker) => (
                        "SELECT NOT EXISTS (SELECT 1 FROM jobs_worker WHERE id = ?1) OR EXISTS (
                            SELECT 1 FROM jobs_link l JOIN jobs_task p ON p.job_id = l.job_id
                            WHERE l.worker_id = ?1 AND p.status = 0
                        )",
                        worker,
                    ),
                    Wait::Task(task) => (
                        "SELECT NOT EXISTS (SELECT 1 FROM jobs_task WHERE id = ?1 AND status < 3)",
                        task,
                    ),
                    _ => continue,
                };
                if session.value(sql, [id])? {
                    ready.push(wait);
                }
            }
            Ok(ready)
        })
    }
}

fn one(session: &Session<'_>, task: Uuid) -> Result<Task> {
    Ok(Task::from_row(only(
        &session.rows(TASK, values_of![task])?,
    )?))
}

pub(super) fn of_ids(session: &Session<'_>, ids: &[Uuid]) -> Result<Vec<Task>> {
    ids.iter().map(|task| one(session, *task)).collect()
}

fn submit(session: &Session<'_>, task: &NewTask) -> Result<SubmitOutcome> {
    let sql = "SELECT id FROM jobs_job
        WHERE room = ?1 AND category = ?2 AND name = ?3 AND NOT is_deleted";
    let name = [&task.job.room, &task.job.category, &task.job.name];
    let Some(job) = session.optional::<Uuid>(sql, name)? else {
        return Ok(SubmitOutcome::NoJob);
    };
    if task.needs_worker && !has_workers(session, job)? {
        return Ok(SubmitOutcome::NoWorkers);
    }
    let sql = "INSERT INTO jobs_task (id, job_id, room, created_by, payload, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (user, now) = (task.user, session.now);
    session.execute(
        sql,
        params![task.id, job, task.room, user, task.payload, now],
    )?;
    one(session, task.id).map(SubmitOutcome::Done)
}

fn has_workers(session: &Session<'_>, job: Uuid) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = ?1)";
    session.value(sql, [job])
}

fn claim(session: &Session<'_>, worker: Uuid, user: Uuid) -> Result<ClaimOutcome> {
    match workers::owner(session, worker)? {
        None => return Ok(ClaimOutcome::NoWorker),
        Some(owner) if owner != user => return Ok(ClaimOutcome::NotOwner),
        Some(_) => {}
    }
    let sql = "UPDATE jobs_task SET status = 1, worker_id = ?1 WHERE seq = (
            SELECT min((
                SELECT min(p.seq) FROM jobs_task p
                WHERE p.job_id = l.job_id AND p.status = 0
            ))
            FROM jobs_link l WHERE l.worker_id = ?1
        ) RETURNING id";
    if let Some(task) = session.optional(sql, [worker])? {
        return one(session, task).map(ClaimOutcome::Task);
    }
    let sql = "SELECT job_id FROM jobs_link WHERE worker_id = ?1 ORDER BY job_id";
    let jobs = session.column(sql, [worker])?;
    Ok(ClaimOutcome::Nothing { jobs })
}

fn change(session: &Session<'_>, update: &TaskUpdate) -> Result<UpdateOutcome> {
    let sql = "SELECT status, worker_id, created_by, job_id FROM jobs_task WHERE id = $1";
    let rows = session.rows(sql, values_of![update.task])?;
    let Some(known) = rows.first() else {
        return Ok(UpdateOutcome::NotFound);
    };
    let (status, worker): (Status, Option<Uuid>) = (known.get("status"), known.get("worker_id"));
    if update.worker.is_some() && update.worker != worker {
        return Ok(UpdateOutcome::WrongWorker);
    }
    // The user who has submitted a task may cancel it while it is pending.
    let takes_back = status == Status::Pending
        && update.status == Status::Cancelled
        && known.get::<Option<Uuid>>("created_by") == Some(update.user);
    if !update.is_superuser && !takes_back {
        let Some(worker) = worker else {
            return Ok(UpdateOutcome::NotClaimed);
        };
        if workers::owner(session, worker)? != Some(update.user) {
            return Ok(UpdateOutcome::NotOwner);
        }
    }
    if !status.leads_to(update.status) {
        return Ok(UpdateOutcome::NoSuchTransition(status));
    }
    let is_terminal = update.status.is_terminal();
    session.execute(
        "UPDATE jobs_task SET status = :status,
            started_at = CASE WHEN :status = 2 THEN :now ELSE started_at END,
            completed_at = CASE WHEN :ends THEN :now ELSE completed_at END,
            error = CASE WHEN :ends THEN coalesce(:error, error) ELSE error END
        WHERE id = :id",
        named_params! {
            ":status": update.status as i16,
            ":now": session.now,
            ":ends": is_terminal,
            ":error": update.error.as_deref().filter(|error| !error.is_empty()),
            ":id": update.task,
        },
    )?;
    let job = known.get("job_id");
    let orphan = if is_terminal && !has_workers(session, job)? {
        orphan(session, job)?
    } else {
        None
    };
    let task = one(session, update.task)?;
    Ok(UpdateOutcome::Done { task, orphan })
}

/// Deletes a job that has no workers and no pending tasks. Returns its name.
pub(super) fn orphan(session: &Session<'_>, job: Uuid) -> Result<Option<FullName>> {
    let sql = "UPDATE jobs_job SET is_deleted = 1
        WHERE id = $1 AND room <> '@internal' AND NOT is_deleted
            AND NOT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = $1)
            AND NOT EXISTS (SELECT 1 FROM jobs_task WHERE job_id = $1 AND status = 0)
        RETURNING room, category, name";
    let rows = session.rows(sql, values_of![job])?;
    Ok(rows.first().map(FullName::from_row))
}
