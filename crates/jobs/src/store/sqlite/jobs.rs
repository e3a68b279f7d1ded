//! Jobs on SQLite.

use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;
use wakeline_bus::Write;

use super::{SqliteStore, tasks::name, workers};
use crate::{
    job::{Job, NewJob, Registered},
    name::FullName,
    page::{Page, Paged},
    store::{Jobs, Step},
    wakes,
};

impl Jobs for SqliteStore {
    fn register_job(&self, job: NewJob) -> Write<Registered> {
        self.write("register_job", wakes::registered, move |connection, now| {
            register(connection, &job, now)
        })
    }

    fn jobs(&self, scopes: Vec<String>, page: Page) -> Step<'_, Paged<Job>> {
        self.read("jobs", move |connection, _| {
            let scopes = serde_json::to_string(&scopes).unwrap_or_default();
            let total = connection
                .prepare_cached(
                    "SELECT count(*) FROM jobs_job
                    WHERE room IN (SELECT value FROM json_each(?1)) AND NOT is_deleted",
                )?
                .query_row([&scopes], |row| row.get(0))?;
            let mut statement = connection.prepare_cached(
                "SELECT id, room, category, name, schema, max_retries FROM jobs_job
                WHERE room IN (SELECT value FROM json_each(?1)) AND NOT is_deleted
                ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3",
            )?;
            let items = statement.query_map(params![scopes, page.limit, page.offset], |row| {
                seen(connection, row)
            })?;
            Ok(Paged {
                items: items.collect::<Result<_, _>>()?,
                total,
            })
        })
    }

    fn job(&self, name: FullName) -> Step<'_, Option<Job>> {
        self.read("job", move |connection, _| {
            connection
                .prepare_cached(
                    "SELECT id, room, category, name, schema, max_retries FROM jobs_job
                    WHERE room = ?1 AND category = ?2 AND name = ?3 AND NOT is_deleted",
                )?
                .query_row([&name.room, &name.category, &name.name], |row| {
                    seen(connection, row)
                })
                .optional()
        })
    }
}

fn register(connection: &Connection, new: &NewJob, now: i64) -> rusqlite::Result<Registered> {
    if let Some(worker) = new.worker
        && workers::owner(connection, worker)? != Some(new.user)
    {
        return Ok(Registered::NoWorker);
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
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let (id, is_new) = match known {
        // What the server runs itself is what its program says it is, not what an earlier one said.
        Some((_, schema, false)) if schema != new.schema && !new.name.is_internal() => {
            return Ok(Registered::Conflict);
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
    let job = connection
        .prepare_cached(
            "SELECT id, room, category, name, schema, max_retries FROM jobs_job WHERE id = ?1",
        )?
        .query_row([id], |row| seen(connection, row))?;
    Ok(Registered::Done {
        job,
        worker,
        is_new,
    })
}

fn seen(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<Job> {
    let id: Uuid = row.get(0)?;
    let workers = connection
        .prepare_cached(
            "SELECT worker_id FROM jobs_link WHERE job_id = ?1 ORDER BY created_at, worker_id",
        )?
        .query_map([id], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(Job {
        id,
        name: name(row, 1)?,
        schema: row.get(4)?,
        max_retries: row.get(5)?,
        workers,
    })
}
