//! Tasks on SQLite.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, SqliteStore, rows, workers};
use crate::{
    name::FullName,
    store::{StoreFuture, Tasks, tasks::TASK, values_of},
    task::{ClaimOutcome, NewTask, Status, SubmitOutcome, Task, TaskUpdate, UpdateOutcome},
    topic::Wait,
    wakes,
};

impl Tasks for SqliteStore {
    fn submit(&self, task: NewTask) -> Write<SubmitOutcome> {
        self.write("submit", wakes::submitted, move |connection, now| {
            submit(connection, &task, now)
        })
    }

    fn claim(&self, worker: Uuid, user: Uuid) -> Write<ClaimOutcome> {
        self.write("claim", wakes::claimed, move |connection, _| {
            claim(connection, worker, user)
        })
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>> {
        self.write("unclaim", wakes::unclaimed, move |connection, _| {
            let returned = connection
                .prepare_cached(
                    "UPDATE jobs_task SET status = 0, worker_id = NULL
                    WHERE id = ?1 AND worker_id = ?2 AND status = 1",
                )?
                .execute([task, worker])?;
            match returned {
                0 => Ok(None),
                _ => one(connection, task),
            }
        })
    }

    fn update(&self, update: TaskUpdate) -> Write<UpdateOutcome> {
        self.write("update", wakes::updated, move |connection, now| {
            change(connection, &update, now)
        })
    }

    fn ready(&self, waits: Vec<Wait>) -> StoreFuture<'_, Vec<Wait>> {
        self.read("recheck", move |connection, _| {
            let mut pending = connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM jobs_task WHERE job_id = ?1 AND status = 0)",
            )?;
            let mut ended = connection.prepare_cached(
                "SELECT NOT EXISTS (SELECT 1 FROM jobs_task WHERE id = ?1 AND status < 3)",
            )?;
            let mut offered = connection.prepare_cached(
                "SELECT NOT EXISTS (SELECT 1 FROM jobs_worker WHERE id = ?1) OR EXISTS (
                    SELECT 1 FROM jobs_link l JOIN jobs_task p ON p.job_id = l.job_id
                    WHERE l.worker_id = ?1 AND p.status = 0
                )",
            )?;
            let mut ready = Vec::new();
            for wait in waits {
                let is_ready = match &wait {
                    Wait::Claim(job) => pending.query_row([job], |row| row.get(0))?,
                    Wait::Worker(worker) => offered.query_row([worker], |row| row.get(0))?,
                    Wait::Task(task) => ended.query_row([task], |row| row.get(0))?,
                    _ => false,
                };
                if is_ready {
                    ready.push(wait);
                }
            }
            Ok(ready)
        })
    }
}

pub(super) fn one(connection: &Connection, task: Uuid) -> Result<Option<Task>> {
    let rows = rows(connection, TASK, values_of![task])?;
    Ok(rows.first().map(Task::from_row))
}

fn submit(connection: &Connection, task: &NewTask, now: i64) -> Result<SubmitOutcome> {
    let job: Option<Uuid> = connection
        .prepare_cached(
            "SELECT id FROM jobs_job
            WHERE room = ?1 AND category = ?2 AND name = ?3 AND NOT is_deleted",
        )?
        .query_row(
            [&task.job.room, &task.job.category, &task.job.name],
            |row| row.get("id"),
        )
        .optional()?;
    let Some(job) = job else {
        return Ok(SubmitOutcome::NoJob);
    };
    if task.needs_worker && !has_workers(connection, job)? {
        return Ok(SubmitOutcome::NoWorkers);
    }
    connection
        .prepare_cached(
            "INSERT INTO jobs_task (id, job_id, room, created_by, payload, created_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            task.id,
            job,
            task.room,
            task.user,
            task.payload,
            now
        ])?;
    Ok(one(connection, task.id)?.map_or(SubmitOutcome::NoJob, SubmitOutcome::Done))
}

fn has_workers(connection: &Connection, job: Uuid) -> Result<bool> {
    let has_workers = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = ?1)")?
        .query_row([job], |row| row.get(0))?;
    Ok(has_workers)
}

fn claim(connection: &Connection, worker: Uuid, user: Uuid) -> Result<ClaimOutcome> {
    match workers::owner(connection, worker)? {
        None => return Ok(ClaimOutcome::NoWorker),
        Some(owner) if owner != user => return Ok(ClaimOutcome::NotOwner),
        Some(_) => {}
    }
    let found: Option<Uuid> = connection
        .prepare_cached(
            "UPDATE jobs_task SET status = 1, worker_id = ?1 WHERE seq = (
                SELECT min((
                    SELECT min(p.seq) FROM jobs_task p
                    WHERE p.job_id = l.job_id AND p.status = 0
                ))
                FROM jobs_link l WHERE l.worker_id = ?1
            ) RETURNING id",
        )?
        .query_row([worker], |row| row.get("id"))
        .optional()?;
    if let Some(found) = found {
        let task = one(connection, found)?;
        let task = task.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        return Ok(ClaimOutcome::Task(task));
    }
    let mut links = connection
        .prepare_cached("SELECT job_id FROM jobs_link WHERE worker_id = ?1 ORDER BY job_id")?;
    let jobs = links.query_map([worker], |row| row.get("job_id"))?;
    Ok(ClaimOutcome::Nothing {
        jobs: jobs.collect::<rusqlite::Result<_>>()?,
    })
}

fn change(connection: &Connection, update: &TaskUpdate, now: i64) -> Result<UpdateOutcome> {
    struct KnownTask {
        status: Status,
        worker: Option<Uuid>,
        created_by: Option<Uuid>,
        job: Uuid,
    }
    let known = connection
        .prepare_cached(
            "SELECT status, worker_id, created_by, job_id FROM jobs_task WHERE id = ?1",
        )?
        .query_row([update.task], |row| {
            Ok(KnownTask {
                status: status(row)?,
                worker: row.get("worker_id")?,
                created_by: row.get("created_by")?,
                job: row.get("job_id")?,
            })
        })
        .optional()?;
    let Some(known) = known else {
        return Ok(UpdateOutcome::NotFound);
    };
    if update.worker.is_some() && update.worker != known.worker {
        return Ok(UpdateOutcome::WrongWorker);
    }
    // The user who has submitted a task may cancel it while it is pending.
    let takes_back = known.status == Status::Pending
        && update.status == Status::Cancelled
        && known.created_by == Some(update.user);
    if !update.is_superuser && !takes_back {
        let Some(worker) = known.worker else {
            return Ok(UpdateOutcome::NotClaimed);
        };
        if workers::owner(connection, worker)? != Some(update.user) {
            return Ok(UpdateOutcome::NotOwner);
        }
    }
    if !known.status.leads_to(update.status) {
        return Ok(UpdateOutcome::NoSuchTransition(known.status));
    }
    let is_terminal = update.status.is_terminal();
    let error = update.error.as_deref().filter(|error| !error.is_empty());
    connection
        .prepare_cached(
            "UPDATE jobs_task SET status = :status,
                started_at = CASE WHEN :status = 2 THEN :now ELSE started_at END,
                completed_at = CASE WHEN :ends THEN :now ELSE completed_at END,
                error = CASE WHEN :ends THEN coalesce(:error, error) ELSE error END
            WHERE id = :id",
        )?
        .execute(named_params! {
            ":status": update.status as i16,
            ":now": now,
            ":ends": is_terminal,
            ":error": error,
            ":id": update.task,
        })?;
    let orphan = if is_terminal && !has_workers(connection, known.job)? {
        orphan(connection, known.job)?
    } else {
        None
    };
    let task = one(connection, update.task)?;
    Ok(
        task.map_or(UpdateOutcome::NotFound, |task| UpdateOutcome::Done {
            task,
            orphan,
        }),
    )
}

/// Deletes a job that has no workers and no pending tasks. Returns its name.
pub(super) fn orphan(connection: &Connection, job: Uuid) -> Result<Option<FullName>> {
    let deleted = connection
        .prepare_cached(
            "UPDATE jobs_job SET is_deleted = 1
            WHERE id = ?1 AND room <> '@internal' AND NOT is_deleted
                AND NOT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = ?1)
                AND NOT EXISTS (SELECT 1 FROM jobs_task WHERE job_id = ?1 AND status = 0)
            RETURNING room, category, name",
        )?
        .query_row([job], name)
        .optional()?;
    Ok(deleted)
}

fn status(row: &Row<'_>) -> rusqlite::Result<Status> {
    let number = row.get("status")?;
    let unknown = rusqlite::types::FromSqlError::OutOfRange(number);
    Status::from_number(number).ok_or(unknown.into())
}

/// The three columns of a name.
pub(super) fn name(row: &Row<'_>) -> rusqlite::Result<FullName> {
    Ok(FullName {
        room: row.get("room")?,
        category: row.get("category")?,
        name: row.get("name")?,
    })
}
