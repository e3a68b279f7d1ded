//! Jobs on SQLite.

use rusqlite::params;
use uuid::Uuid;
use wakeline_bus::Write;

use super::{Result, Session, SqliteStore, workers};
use crate::{
    job::{Job, JobRegistration, NewJob},
    name::FullName,
    store::{Jobs, only, values_of},
    wakes,
};

impl Jobs for SqliteStore {
    fn register_job(&self, job: NewJob) -> Write<JobRegistration> {
        self.write("register_job", wakes::registered, move |session| {
            register(session, job)
        })
    }
}

fn register(session: &Session<'_>, new: NewJob) -> Result<JobRegistration> {
    if let Some(worker) = new.worker
        && workers::owner(session, worker)? != Some(new.user)
    {
        return Ok(JobRegistration::NoWorker);
    }
    let FullName {
        room,
        category,
        name,
    } = new.name.clone();
    let sql = "SELECT id, schema, is_deleted FROM jobs_job
        WHERE room = $1 AND category = $2 AND name = $3";
    let known = session.rows(sql, values_of![room, category, name])?;
    let (id, is_new) = match known.first() {
        Some(known) => {
            let is_deleted: bool = known.get("is_deleted");
            let is_other = known.get::<String>("schema") != new.schema;
            // The server's own jobs are what its program says they are, not what an earlier one said.
            if is_other && !is_deleted && !new.name.is_internal() {
                return Ok(JobRegistration::Conflict);
            }
            let id: Uuid = known.get("id");
            let sql = "UPDATE jobs_job SET is_deleted = 0, schema = ?2, max_retries = ?3
                WHERE id = ?1";
            session.execute(sql, params![id, new.schema, new.max_retries])?;
            (id, is_deleted)
        }
        None => {
            let (id, retries) = (Uuid::new_v4(), i64::from(new.max_retries));
            let FullName {
                room,
                category,
                name,
            } = new.name;
            session.rows(
                "INSERT INTO jobs_job (id, room, category, name, schema, max_retries, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, {now})",
                values_of![id, room, category, name, new.schema, retries],
            )?;
            (id, true)
        }
    };
    let worker = match new.worker {
        Some(worker) => worker,
        None => workers::create(session, new.user)?,
    };
    session.rows(
        "INSERT OR IGNORE INTO jobs_link (worker_id, job_id, created_at) VALUES ($1, $2, {now})",
        values_of![worker, id],
    )?;
    let view = "SELECT * FROM jobs_job_view WHERE id = $1";
    let rows = session.rows(view, values_of![id])?;
    Ok(JobRegistration::Done {
        job: Job::from_row(only(&rows)?),
        worker,
        is_new,
    })
}
