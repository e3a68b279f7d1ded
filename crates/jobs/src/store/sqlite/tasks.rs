//! Tasks on SQLite.

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::SqliteStore;
use crate::{
    name::FullName,
    page::{Page, Paged},
    store::{Step, Tasks},
    task::{Claimed, NewTask, Status, Submitted, Task, TaskFilter, Update, Updated},
    topic::Wait,
    wakes,
};

/// A task as callers see it. Its place in the line is counted on the index of pending tasks, up to
/// itself.
const TASK: &str = "SELECT t.id, t.job_id, j.room || ':' || j.category || ':' || j.name, t.room,
        t.status, t.created_at, t.started_at, t.completed_at, t.worker_id, t.error, t.payload,
        CASE WHEN t.status = 0 THEN (
            SELECT count(*) FROM jobs_task p
            WHERE p.job_id = t.job_id AND p.status = 0 AND p.seq <= t.seq
        ) END
    FROM jobs_task t JOIN jobs_job j ON j.id = t.job_id WHERE t.id = ?1";

impl Tasks for SqliteStore {
    fn submit(&self, task: NewTask) -> Write<Submitted> {
        self.write("submit", wakes::submitted, move |connection, now| {
            submit(connection, &task, now)
        })
    }

    fn claim(&self, worker: Uuid, user: Uuid) -> Write<Claimed> {
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

    fn task(&self, task: Uuid) -> Step<'_, Option<Task>> {
        self.read("task", move |connection, _| one(connection, task))
    }

    fn update(&self, update: Update) -> Write<Updated> {
        self.write("update", wakes::updated, move |connection, now| {
            change(connection, &update, now)
        })
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Step<'_, Paged<Task>> {
        self.read("tasks", move |connection, _| {
            list(connection, &filter, page)
        })
    }

    fn ready(&self, waits: Vec<Wait>) -> Step<'_, Vec<Wait>> {
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

pub(super) fn one(connection: &Connection, task: Uuid) -> rusqlite::Result<Option<Task>> {
    connection
        .prepare_cached(TASK)?
        .query_row([task], seen)
        .optional()
}

fn submit(connection: &Connection, task: &NewTask, now: i64) -> rusqlite::Result<Submitted> {
    let job: Option<Uuid> = connection
        .prepare_cached(
            "SELECT id FROM jobs_job
            WHERE room = ?1 AND category = ?2 AND name = ?3 AND NOT is_deleted",
        )?
        .query_row(
            [&task.job.room, &task.job.category, &task.job.name],
            |row| row.get(0),
        )
        .optional()?;
    let Some(job) = job else {
        return Ok(Submitted::NoJob);
    };
    if task.needs_worker && !has_workers(connection, job)? {
        return Ok(Submitted::NoWorkers);
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
    Ok(one(connection, task.id)?.map_or(Submitted::NoJob, Submitted::Done))
}

fn has_workers(connection: &Connection, job: Uuid) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = ?1)")?
        .query_row([job], |row| row.get(0))
}

fn claim(connection: &Connection, worker: Uuid, user: Uuid) -> rusqlite::Result<Claimed> {
    let owner: Option<Uuid> = connection
        .prepare_cached("SELECT user_id FROM jobs_worker WHERE id = ?1")?
        .query_row([worker], |row| row.get(0))
        .optional()?;
    match owner {
        None => return Ok(Claimed::NoWorker),
        Some(owner) if owner != user => return Ok(Claimed::Foreign),
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
        .query_row([worker], |row| row.get(0))
        .optional()?;
    if let Some(found) = found {
        let task = one(connection, found)?;
        return task
            .map(Claimed::Task)
            .ok_or(rusqlite::Error::QueryReturnedNoRows);
    }
    let mut links = connection
        .prepare_cached("SELECT job_id FROM jobs_link WHERE worker_id = ?1 ORDER BY job_id")?;
    let jobs = links.query_map([worker], |row| row.get(0))?;
    Ok(Claimed::Nothing {
        jobs: jobs.collect::<Result<_, _>>()?,
    })
}

fn change(connection: &Connection, update: &Update, now: i64) -> rusqlite::Result<Updated> {
    struct Known {
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
            Ok(Known {
                status: status(row, 0)?,
                worker: row.get(1)?,
                created_by: row.get(2)?,
                job: row.get(3)?,
            })
        })
        .optional()?;
    let Some(known) = known else {
        return Ok(Updated::NotFound);
    };
    if update.worker.is_some() && update.worker != known.worker {
        return Ok(Updated::OtherWorkers);
    }
    // Who has handed a task in may take it back while nobody has it.
    let takes_back = known.status == Status::Pending
        && update.status == Status::Cancelled
        && known.created_by == Some(update.user);
    if !update.is_superuser && !takes_back {
        let Some(worker) = known.worker else {
            return Ok(Updated::Unclaimed);
        };
        let owner: Option<Uuid> = connection
            .prepare_cached("SELECT user_id FROM jobs_worker WHERE id = ?1")?
            .query_row([worker], |row| row.get(0))
            .optional()?;
        if owner != Some(update.user) {
            return Ok(Updated::Foreign);
        }
    }
    if !known.status.leads_to(update.status) {
        return Ok(Updated::Stays(known.status));
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
    Ok(task.map_or(Updated::NotFound, |task| Updated::Done { task, orphan }))
}

/// A job that nobody does and nobody waits for is deleted; its name.
pub(super) fn orphan(connection: &Connection, job: Uuid) -> rusqlite::Result<Option<FullName>> {
    connection
        .prepare_cached(
            "UPDATE jobs_job SET is_deleted = 1
            WHERE id = ?1 AND room <> '@internal' AND NOT is_deleted
                AND NOT EXISTS (SELECT 1 FROM jobs_link WHERE job_id = ?1)
                AND NOT EXISTS (SELECT 1 FROM jobs_task WHERE job_id = ?1 AND status = 0)
            RETURNING room, category, name",
        )?
        .query_row([job], |row| name(row, 0))
        .optional()
}

/// Places in the line are counted from one task of the page to the next, not for each from the
/// beginning.
fn list(connection: &Connection, filter: &TaskFilter, page: Page) -> rusqlite::Result<Paged<Task>> {
    let status = filter.status.map(|status| status as i16);
    let filters = named_params! { ":room": filter.room, ":job": filter.job, ":status": status };
    let total = connection
        .prepare_cached(
            "SELECT count(*) FROM jobs_task
            WHERE room = :room AND (:job IS NULL OR job_id = :job)
                AND (:status IS NULL OR status = :status)",
        )?
        .query_row(filters, |row| row.get(0))?;
    let mut statement = connection.prepare_cached(
        "WITH page AS (
            SELECT seq, job_id, status FROM jobs_task
            WHERE room = :room AND (:job IS NULL OR job_id = :job)
                AND (:status IS NULL OR status = :status)
            ORDER BY seq DESC LIMIT :limit OFFSET :offset
        ), steps AS (
            SELECT p.job_id, p.seq, (
                SELECT count(*) FROM jobs_task q
                WHERE q.job_id = p.job_id AND q.status = 0 AND q.seq <= p.seq AND q.seq > p.before
            ) AS more
            FROM (
                SELECT job_id, seq,
                    coalesce(lag(seq) OVER (PARTITION BY job_id ORDER BY seq), 0) AS before
                FROM page WHERE status = 0
            ) p
        ), places AS (
            SELECT seq, sum(more) OVER (PARTITION BY job_id ORDER BY seq) AS place FROM steps
        )
        SELECT t.id, t.job_id, j.room || ':' || j.category || ':' || j.name, t.room, t.status,
            t.created_at, t.started_at, t.completed_at, t.worker_id, t.error, t.payload,
            places.place
        FROM page JOIN jobs_task t ON t.seq = page.seq JOIN jobs_job j ON j.id = t.job_id
        LEFT JOIN places ON places.seq = page.seq
        ORDER BY t.seq DESC",
    )?;
    let items = statement.query_map(
        named_params! {
            ":room": filter.room,
            ":job": filter.job,
            ":status": status,
            ":limit": page.limit,
            ":offset": page.offset,
        },
        seen,
    )?;
    Ok(Paged {
        items: items.collect::<Result<_, _>>()?,
        total,
    })
}

fn seen(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get(0)?,
        job: row.get(1)?,
        job_name: row.get(2)?,
        room: row.get(3)?,
        status: status(row, 4)?,
        created_at: row.get(5)?,
        started_at: row.get(6)?,
        completed_at: row.get(7)?,
        worker: row.get(8)?,
        error: row.get(9)?,
        payload: row.get(10)?,
        queue_position: row.get(11)?,
    })
}

fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<Status> {
    let number: i16 = row.get(column)?;
    Status::from_number(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(
        column,
        number.into(),
    ))
}

/// Three columns that are a name.
pub(super) fn name(row: &Row<'_>, from: usize) -> rusqlite::Result<FullName> {
    Ok(FullName {
        room: row.get(from)?,
        category: row.get(from + 1)?,
        name: row.get(from + 2)?,
    })
}
