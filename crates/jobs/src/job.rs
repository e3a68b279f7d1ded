//! Jobs: what workers offer to do.

use uuid::Uuid;

use crate::name::FullName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Uuid,
    pub name: FullName,
    /// JSON.
    pub schema: String,
    /// How often a task whose worker was lost becomes pending again.
    pub max_retries: i32,
    /// The workers that do it, oldest link first.
    pub workers: Vec<Uuid>,
}

/// A job that a worker registers.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub name: FullName,
    /// JSON, its keys sorted: two schemas are the same when these texts are.
    pub schema: String,
    pub max_retries: i32,
    pub user: Uuid,
    /// Without one, a worker is created.
    pub worker: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobRegistration {
    /// The worker does not exist, or is another user's.
    NoWorker,
    /// The job has another schema.
    Conflict,
    Done {
        job: Job,
        worker: Uuid,
        /// It is new, or was deleted and is back.
        is_new: bool,
    },
}
