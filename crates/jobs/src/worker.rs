//! Workers: processes that offer jobs and providers for as long as their heart beats.

use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    pub id: Uuid,
    /// Microseconds since 1970.
    pub last_heartbeat: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerSummary {
    pub worker: Worker,
    pub job_count: i64,
}

/// What was asked for somebody's worker or provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned<T> {
    NotFound,
    /// It is another user's.
    Foreign,
    Done(T),
}
