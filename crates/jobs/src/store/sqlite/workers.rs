//! Workers on SQLite.

use rusqlite::{Connection, OptionalExtension, named_params, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, SqliteStore, tasks};
use crate::{
    store::Workers,
    task::{LostWorkers, SweepAges, SweepOutcome, Task},
    wakes,
    worker::{OwnerOutcome, Worker},
};

impl Workers for SqliteStore {
    fn create_worker(&self, user: Uuid) -> Write<Worker> {
        self.write("create_worker", wakes::nobody, move |connection, now| {
            create(connection, user, now)
        })
    }

    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<OwnerOutcome<Worker>> {
        self.write("heartbeat", wakes::nobody, move |connection, now| {
            let owner = owner(connection, worker)?;
            Ok(match owner {
                None => OwnerOutcome::NotFound,
                Some(owner) if owner != user => OwnerOutcome::NotOwner,
                Some(_) => {
                    beat(connection, worker, now)?;
                    OwnerOutcome::Done(Worker {
                        id: worker,
                        last_heartbeat: now,
                    })
                }
            })
        })
    }

    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<LostWorkers>> {
        self.write(
            "remove_worker",
            wakes::removed_worker,
            move |connection, now| {
                let owner = owner(connection, worker)?;
                Ok(match owner {
                    None => OwnerOutcome::NotFound,
                    Some(owner) if user.is_some_and(|user| user != owner) => OwnerOutcome::NotOwner,
                    Some(_) => OwnerOutcome::Done(remove(connection, worker, now)?),
                })
            },
        )
    }

    fn sweep(&self, terms: SweepAges) -> Write<SweepOutcome> {
        self.write("sweep", wakes::swept, move |connection, now| {
            sweep(connection, terms, now)
        })
    }
}

pub(super) fn create(connection: &Connection, user: Uuid, now: i64) -> Result<Worker> {
    let id = Uuid::new_v4();
    connection
        .prepare_cached(
            "INSERT INTO jobs_worker (id, user_id, beat_at, created_at) VALUES (?1, ?2, ?3, ?3)",
        )?
        .execute(params![id, user, now])?;
    Ok(Worker {
        id,
        last_heartbeat: now,
    })
}

pub(super) fn beat(connection: &Connection, worker: Uuid, now: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE jobs_worker SET beat_at = ?2 WHERE id = ?1")?
        .execute(params![worker, now])?;
    Ok(())
}

pub(super) fn owner(connection: &Connection, worker: Uuid) -> Result<Option<Uuid>> {
    let owner = connection
        .prepare_cached("SELECT user_id FROM jobs_worker WHERE id = ?1")?
        .query_row([worker], |row| row.get("user_id"))
        .optional()?;
    Ok(owner)
}

fn remove(connection: &Connection, worker: Uuid, now: i64) -> Result<LostWorkers> {
    let its_tasks: Vec<Uuid> = connection
        .prepare_cached(
            "UPDATE jobs_task SET
                status = CASE WHEN retries < j.max_retries THEN 0 ELSE 4 END,
                retries = retries + 1,
                worker_id = NULL,
                started_at = CASE WHEN retries < j.max_retries THEN NULL ELSE started_at END,
                completed_at = CASE WHEN retries < j.max_retries THEN NULL ELSE :now END,
                error = CASE WHEN retries < j.max_retries THEN NULL ELSE 'Worker disconnected' END
            FROM jobs_job j
            WHERE j.id = jobs_task.job_id AND jobs_task.worker_id = :worker
                AND jobs_task.status IN (1, 2)
            RETURNING jobs_task.id",
        )?
        .query_map(named_params! { ":now": now, ":worker": worker }, |row| {
            row.get("id")
        })?
        .collect::<rusqlite::Result<_>>()?;
    let providers = connection
        .prepare_cached("SELECT room, category, name, id FROM jobs_provider WHERE worker_id = ?1")?
        .query_map([worker], |row| Ok((tasks::name(row)?, row.get("id")?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut its_jobs: Vec<Uuid> = connection
        .prepare_cached("SELECT job_id FROM jobs_link WHERE worker_id = ?1")?
        .query_map([worker], |row| row.get("job_id"))?
        .collect::<rusqlite::Result<_>>()?;
    // Its links and providers go with it.
    connection
        .prepare_cached("DELETE FROM jobs_worker WHERE id = ?1")?
        .execute([worker])?;
    let tasks = seen(connection, &its_tasks)?;
    its_jobs.extend(tasks.iter().map(|task| task.job));
    its_jobs.sort_unstable();
    its_jobs.dedup();
    let mut jobs = Vec::new();
    for job in its_jobs {
        tasks::orphan(connection, job)?;
        jobs.push(
            connection
                .prepare_cached("SELECT room, category, name FROM jobs_job WHERE id = ?1")?
                .query_row([job], tasks::name)?,
        );
    }
    Ok(LostWorkers {
        workers: vec![worker],
        tasks,
        jobs,
        providers,
    })
}

fn seen(connection: &Connection, which: &[Uuid]) -> Result<Vec<Task>> {
    let tasks = which.iter().map(|task| tasks::one(connection, *task));
    tasks.filter_map(Result::transpose).collect()
}

fn sweep(connection: &Connection, terms: SweepAges, now: i64) -> Result<SweepOutcome> {
    let mut loss = LostWorkers::default();
    let lost: Vec<Uuid> = connection
        .prepare_cached("SELECT id FROM jobs_worker WHERE beat_at <= ?1 ORDER BY beat_at LIMIT ?2")?
        .query_map([now - terms.worker, terms.limit], |row| row.get("id"))?
        .collect::<rusqlite::Result<_>>()?;
    for worker in &lost {
        loss.add(remove(connection, *worker, now)?);
    }
    let overdue: Vec<Uuid> = connection
        .prepare_cached(
            "UPDATE jobs_task SET status = 4, completed_at = :now,
                error = 'Internal worker timeout'
            FROM jobs_job j
            WHERE j.id = jobs_task.job_id AND j.room = '@internal'
                AND jobs_task.status IN (1, 2)
                AND coalesce(jobs_task.started_at, jobs_task.created_at) <= :before
            RETURNING jobs_task.id",
        )?
        .query_map(
            named_params! { ":now": now, ":before": now - terms.internal },
            |row| row.get("id"),
        )?
        .collect::<rusqlite::Result<_>>()?;
    loss.tasks.extend(seen(connection, &overdue)?);
    let forgotten = connection
        .prepare_cached(
            "DELETE FROM jobs_task WHERE seq IN (
                SELECT seq FROM jobs_task WHERE status >= 3 AND completed_at <= ?1
                ORDER BY completed_at LIMIT ?2
            )",
        )?
        .execute([now - terms.kept, terms.limit])?;
    let forgotten = i64::try_from(forgotten).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "DELETE FROM jobs_job WHERE id IN (
                SELECT id FROM jobs_job d WHERE is_deleted
                    AND NOT EXISTS (SELECT 1 FROM jobs_task t WHERE t.job_id = d.id)
                LIMIT ?1
            )",
        )?
        .execute([terms.limit])?;
    let next: Option<i64> = connection
        .prepare_cached(
            "SELECT min(due) AS next FROM (
                SELECT min(beat_at) + :worker AS due FROM jobs_worker
                UNION ALL SELECT min(completed_at) + :kept FROM jobs_task WHERE status >= 3
                UNION ALL SELECT min(coalesce(t.started_at, t.created_at)) + :internal
                FROM jobs_task t JOIN jobs_job j ON j.id = t.job_id
                WHERE j.room = '@internal' AND t.status IN (1, 2)
            )",
        )?
        .query_row(
            named_params! {
                ":worker": terms.worker, ":kept": terms.kept, ":internal": terms.internal,
            },
            |row| row.get("next"),
        )?;
    Ok(SweepOutcome {
        loss,
        forgotten,
        next: next.map(|due| due - now),
        is_more: forgotten >= terms.limit
            || i64::try_from(lost.len()).unwrap_or(i64::MAX) >= terms.limit,
    })
}
