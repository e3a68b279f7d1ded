//! Workers on SQLite.

use rusqlite::{named_params, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, Session, SqliteStore, tasks};
use crate::{
    name::FullName,
    store::{Row, Workers, only, values_of, workers::CREATE},
    task::{LostWorkers, SweepAges, SweepOutcome},
    wakes,
    worker::{OwnerOutcome, Worker},
};

impl Workers for SqliteStore {
    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<OwnerOutcome<Worker>> {
        self.write("heartbeat", wakes::nobody, move |session| {
            Ok(match owner(session, worker)? {
                None => OwnerOutcome::NotFound,
                Some(owner) if owner != user => OwnerOutcome::NotOwner,
                Some(_) => OwnerOutcome::Done(beat(session, worker)?),
            })
        })
    }

    fn heartbeats(&self, workers: Vec<Uuid>) -> Write<()> {
        self.write("heartbeats", wakes::nobody, move |session| {
            let sql = "UPDATE jobs_worker SET beat_at = ?1
                WHERE id IN (SELECT unhex(value, '-') FROM json_each(?2))";
            session.execute(
                sql,
                params![session.now, serde_json::json!(workers).to_string()],
            )?;
            Ok(())
        })
    }

    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<OwnerOutcome<LostWorkers>> {
        self.write("remove_worker", wakes::removed_worker, move |session| {
            Ok(match owner(session, worker)? {
                None => OwnerOutcome::NotFound,
                Some(owner) if user.is_some_and(|user| user != owner) => OwnerOutcome::NotOwner,
                Some(_) => OwnerOutcome::Done(remove(session, worker)?),
            })
        })
    }

    fn sweep(&self, terms: SweepAges) -> Write<SweepOutcome> {
        self.write("sweep", wakes::swept, move |session| sweep(session, terms))
    }
}

pub(super) fn create(session: &Session<'_>, user: Uuid) -> Result<Uuid> {
    let rows = session.rows(CREATE, values_of![Uuid::new_v4(), user])?;
    Ok(Worker::from_row(only(&rows)?).id)
}

pub(super) fn beat(session: &Session<'_>, worker: Uuid) -> Result<Worker> {
    let sql = "UPDATE jobs_worker SET beat_at = {now} WHERE id = $1 RETURNING *";
    let rows = session.rows(sql, values_of![worker])?;
    Ok(Worker::from_row(only(&rows)?))
}

pub(super) fn owner(session: &Session<'_>, worker: Uuid) -> Result<Option<Uuid>> {
    session.optional("SELECT user_id FROM jobs_worker WHERE id = ?1", [worker])
}

fn remove(session: &Session<'_>, worker: Uuid) -> Result<LostWorkers> {
    let sql = "UPDATE jobs_task SET
            status = CASE WHEN retries < j.max_retries THEN 0 ELSE 4 END,
            retries = retries + 1,
            worker_id = NULL,
            started_at = CASE WHEN retries < j.max_retries THEN NULL ELSE started_at END,
            completed_at = CASE WHEN retries < j.max_retries THEN NULL ELSE :now END,
            error = CASE WHEN retries < j.max_retries THEN NULL ELSE 'Worker disconnected' END
        FROM jobs_job j
        WHERE j.id = jobs_task.job_id AND jobs_task.worker_id = :worker
            AND jobs_task.status IN (1, 2)
        RETURNING jobs_task.id";
    let its_tasks = session.column(
        sql,
        named_params! { ":now": session.now, ":worker": worker },
    )?;
    let sql = "SELECT room, category, name, id FROM jobs_provider WHERE worker_id = $1";
    let providers = session.rows(sql, values_of![worker])?;
    let provider = |row: &Row| (FullName::from_row(row), row.get("id"));
    let sql = "SELECT job_id FROM jobs_link WHERE worker_id = ?1";
    let mut its_jobs: Vec<Uuid> = session.column(sql, [worker])?;
    // Its links and providers go with it.
    session.execute("DELETE FROM jobs_worker WHERE id = ?1", [worker])?;
    let tasks = tasks::of_ids(session, &its_tasks)?;
    its_jobs.extend(tasks.iter().map(|task| task.job));
    its_jobs.sort_unstable();
    its_jobs.dedup();
    let mut jobs = Vec::new();
    for job in its_jobs {
        tasks::orphan(session, job)?;
        let sql = "SELECT room, category, name FROM jobs_job WHERE id = $1";
        jobs.push(FullName::from_row(only(
            &session.rows(sql, values_of![job])?,
        )?));
    }
    Ok(LostWorkers {
        workers: vec![worker],
        tasks,
        jobs,
        providers: providers.iter().map(provider).collect(),
    })
}

fn sweep(session: &Session<'_>, terms: SweepAges) -> Result<SweepOutcome> {
    let now = session.now;
    let mut loss = LostWorkers::default();
    let sql = "SELECT id FROM jobs_worker WHERE beat_at <= ?1 ORDER BY beat_at LIMIT ?2";
    let lost: Vec<Uuid> = session.column(sql, [now - terms.worker, terms.limit])?;
    for worker in &lost {
        loss.add(remove(session, *worker)?);
    }
    let sql =
        "UPDATE jobs_task SET status = 4, completed_at = ?1, error = 'Internal worker timeout'
        FROM jobs_job j
        WHERE j.id = jobs_task.job_id AND j.room = '@internal'
            AND jobs_task.status IN (1, 2)
            AND coalesce(jobs_task.started_at, jobs_task.created_at) <= ?2
        RETURNING jobs_task.id";
    let overdue = session.column(sql, [now, now - terms.internal])?;
    loss.tasks.extend(tasks::of_ids(session, &overdue)?);
    let sql = "DELETE FROM jobs_task WHERE seq IN (
            SELECT seq FROM jobs_task WHERE status >= 3 AND completed_at <= ?1
            ORDER BY completed_at LIMIT ?2
        )";
    let deleted_tasks = session.execute(sql, [now - terms.kept, terms.limit])?;
    let sql = "DELETE FROM jobs_job WHERE id IN (
            SELECT id FROM jobs_job d WHERE is_deleted
                AND NOT EXISTS (SELECT 1 FROM jobs_task t WHERE t.job_id = d.id)
            LIMIT ?1
        )";
    session.execute(sql, [terms.limit])?;
    let sql = "SELECT min(due) FROM (
            SELECT min(beat_at) + ?1 AS due FROM jobs_worker
            UNION ALL SELECT min(completed_at) + ?2 FROM jobs_task WHERE status >= 3
            UNION ALL SELECT min(coalesce(t.started_at, t.created_at)) + ?3
            FROM jobs_task t JOIN jobs_job j ON j.id = t.job_id
            WHERE j.room = '@internal' AND t.status IN (1, 2)
        )";
    let next: Option<i64> = session.value(sql, [terms.worker, terms.kept, terms.internal])?;
    let limit = usize::try_from(terms.limit).unwrap_or(usize::MAX);
    Ok(SweepOutcome {
        loss,
        deleted_tasks: i64::try_from(deleted_tasks).unwrap_or(i64::MAX),
        next: next.map(|due| due - now),
        is_more: deleted_tasks >= limit || lost.len() >= limit,
    })
}
