//! Workers register jobs.

use std::sync::Arc;

use serde_json::Value;

use super::Jobs;
use crate::{
    caller::Caller,
    error::{Error, InvalidField},
    job::{Job, JobRegistration, NewJob},
    name::{FullName, GLOBAL, INTERNAL, MAX_BYTES, MAX_CHARS, check_room, scopes},
    page::{ListPage, Page},
    problem,
};
use uuid::Uuid;

/// The kind of an offer that a worker registers: a job or a provider.
#[derive(Debug)]
pub struct Offer {
    pub category: String,
    pub name: String,
    pub schema: Value,
    pub worker: Option<Uuid>,
}

impl Jobs {
    /// The job, the worker that does it, and whether the job is new.
    pub async fn register_job(
        self: &Arc<Self>,
        caller: Caller,
        room: &str,
        offer: Offer,
        max_retries: i32,
    ) -> Result<(Job, Uuid, bool), Error> {
        check_room(room)?;
        if (room == GLOBAL || room == INTERNAL) && !caller.is_superuser {
            let text = "Admin required for @global/@internal job registration";
            return Err(Error::forbidden(text));
        }
        allowed(&offer.category, &self.settings.categories)?;
        self.check_offer(room, &offer)?;
        let name = FullName::new(room, &offer.category, &offer.name);
        let new = NewJob {
            name: name.clone(),
            // Its keys are sorted: two schemas that say the same are the same text.
            schema: offer.schema.to_string(),
            max_retries,
            user: caller.id,
            worker: offer.worker,
        };
        let door = self.clone();
        let registered = self.store.register_job(new).map(move |registered| {
            if let JobRegistration::Done { job, .. } = &registered {
                door.events.jobs_changed(&job.name.room);
            }
            registered
        });
        match registered.commit(&self.bus).await? {
            JobRegistration::NoWorker => Err(no_worker(offer.worker)),
            JobRegistration::Conflict => Err(Error::problem(
                &problem::SCHEMA_CONFLICT,
                format!("Schema mismatch for job '{name}'"),
            )),
            JobRegistration::Done {
                job,
                worker,
                is_new,
            } => Ok((job, worker, is_new)),
        }
    }

    /// The checks of jobs and providers alike.
    pub(super) fn check_offer(&self, room: &str, offer: &Offer) -> Result<(), Error> {
        for (field, text) in [("category", &offer.category), ("name", &offer.name)] {
            if text.is_empty() || text.chars().count() > MAX_CHARS || text.contains('\0') {
                let said = format!("Must have 1 to {MAX_CHARS} characters and no NUL");
                return Err(InvalidField::new(
                    "value_error",
                    &["body", field],
                    said,
                    text.as_str(),
                )
                .into());
            }
        }
        let bytes = room.len() + offer.category.len() + offer.name.len();
        if bytes > MAX_BYTES {
            let said = format!(
                "Room, category and name must have {MAX_BYTES} bytes together at most, they have \
                 {bytes}"
            );
            let name = offer.name.as_str();
            return Err(InvalidField::new("value_error", &["body", "name"], said, name).into());
        }
        if offer.category.contains([':', '/']) {
            let said = "Must not contain : or /, which end it in a full name";
            let category = offer.category.as_str();
            return Err(
                InvalidField::new("value_error", &["body", "category"], said, category).into(),
            );
        }
        let size = offer.schema.to_string().len();
        if size > self.settings.max_schema {
            let said = format!(
                "At most {} bytes (jobs.max_schema), it has {size}",
                self.settings.max_schema
            );
            return Err(
                InvalidField::new("too_long", &["body", "schema"], said, Value::Null).into(),
            );
        }
        Ok(())
    }

    pub async fn jobs(&self, room: &str, page: Page) -> Result<ListPage<Job>, Error> {
        check_room(room)?;
        Ok(self.store.jobs(scopes(room, true), page).await?)
    }

    pub async fn job(&self, room: &str, name: &str) -> Result<Job, Error> {
        check_room(room)?;
        let parsed = parse(name)?;
        let job = self.store.job(parsed).await?;
        job.ok_or_else(|| not_found(name))
    }
}

/// A job's name from a path.
pub(super) fn parse(name: &str) -> Result<FullName, Error> {
    FullName::parse(name).ok_or_else(|| {
        let text = format!("Invalid job name format: {name}");
        Error::problem(&problem::JOB_NOT_FOUND, text)
    })
}

pub(super) fn not_found(name: &str) -> Error {
    Error::problem(&problem::JOB_NOT_FOUND, format!("Job '{name}' not found"))
}

pub(super) fn no_worker(worker: Option<Uuid>) -> Error {
    let worker = worker.unwrap_or_default();
    Error::problem(
        &problem::WORKER_NOT_FOUND,
        format!("Worker '{worker}' not found or not owned by user"),
    )
}

pub(super) fn allowed(category: &str, allowed: &[String]) -> Result<(), Error> {
    if allowed.iter().any(|known| known == category) {
        return Ok(());
    }
    let list: Vec<String> = allowed.iter().map(|known| format!("'{known}'")).collect();
    Err(Error::problem(
        &problem::INVALID_CATEGORY,
        format!(
            "Category '{category}' not in allowed list: [{}]",
            list.join(", ")
        ),
    ))
}
