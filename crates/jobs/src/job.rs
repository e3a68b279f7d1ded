//! Jobs: what workers offer to do.

use uuid::Uuid;

use crate::name::FullName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Uuid,
    pub name: FullName,
    /// JSON.
    pub schema: String,
    /// How often a task of it is tried again whose worker was lost.
    pub max_retries: i32,
    /// Who does it, oldest link first.
    pub workers: Vec<Uuid>,
}

/// A worker says that it does this job.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub name: FullName,
    /// JSON, its keys sorted: two schemas are the same when these texts are.
    pub schema: String,
    pub max_retries: i32,
    pub user: Uuid,
    /// Without one, one is made.
    pub worker: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// The worker is not known, or another user's.
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
