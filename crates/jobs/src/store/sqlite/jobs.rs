//! Jobs on SQLite.

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use super::{Result, SqliteStore, rows, workers};
use crate::{
    job::{Job, JobRegistration, NewJob},
    name::FullName,
    store::{Jobs, only, values_of},
    wakes,
};

impl Jobs for SqliteStore {
    fn register_job(&self, job: NewJob) -> Write<JobRegistration> {
        self.write("register_job", wakes::registered, move |connection, now| {
            register(connection, &job, now)
        })
    }
}

fn register(connection: &Connection, new: &NewJob, now: i64) -> Result<JobRegistration> {
    if let Some(worker) = new.worker
        && workers::owner(connection, worker)? != Some(new.user)
    {
        return Ok(JobRegistration::NoWorker);
    }
    let FullName {
        room,
        category,
        name,
    } = &new.name;
    let known: Option<(Uuid, String, bool)> = connection
        .prepare_cached(
            "SELECT id, schema, is_deleted FROM jobs_job
            WHERE room = ?1 AND category = ?2 AND name = ?3",
        )?
        .query_row([room, category, name], |row| {
            Ok((row.get("id")?, row.get("schema")?, row.get("is_deleted")?))
        })
        .optional()?;
    let (id, is_new) = match known {
        // The server's own jobs are what its program says they are, not what an earlier one said.
        Some((_, schema, false)) if schema != new.schema && !new.name.is_internal() => {
            return Ok(JobRegistration::Conflict);
        }
        Some((id, _, is_deleted)) => {
            connection
                .prepare_cached(
                    "UPDATE jobs_job SET is_deleted = 0, schema = ?2, max_retries = ?3
                    WHERE id = ?1",
                )?
                .execute(params![id, new.schema, new.max_retries])?;
            (id, is_deleted)
        }
        None => {
            let id = Uuid::new_v4();
            connection
                .prepare_cached(
                    "INSERT INTO jobs_job
                        (id, room, category, name, schema, max_retries, created_at)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![
                    id,
                    room,
                    category,
                    name,
                    new.schema,
                    new.max_retries,
                    now
                ])?;
            (id, true)
        }
    };
    let worker = match new.worker {
        Some(worker) => worker,
        None => workers::create(connection, new.user, now)?.id,
    };
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO jobs_link (worker_id, job_id, created_at) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![worker, id, now])?;
    let view = "SELECT * FROM jobs_job_view WHERE id = $1";
    let rows = rows(connection, view, values_of![id])?;
    Ok::<_, Error>(JobRegistration::Done {
        job: Job::from_row(only(&rows)?),
        worker,
        is_new,
    })
}
