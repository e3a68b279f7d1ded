//! Tasks: a job to be done once, and the states it goes through.

use std::fmt;

use uuid::Uuid;

use crate::name::FullName;

/// In the order in which a task usually goes through them. The numbers are in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum Status {
    Pending = 0,
    Claimed = 1,
    Running = 2,
    Completed = 3,
    Failed = 4,
    Cancelled = 5,
}

impl Status {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Claimed,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|status| *status as i64 == number)
    }

    #[must_use]
    pub fn is_terminal(self) -> bool {
        self >= Self::Completed
    }

    /// Whether a task in this state may be put into that.
    #[must_use]
    pub fn leads_to(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(next, Self::Claimed | Self::Cancelled),
            Self::Claimed => matches!(next, Self::Running | Self::Failed | Self::Cancelled),
            Self::Running => matches!(next, Self::Completed | Self::Failed | Self::Cancelled),
            Self::Completed | Self::Failed | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: Uuid,
    pub job: Uuid,
    pub job_name: String,
    pub room: String,
    pub status: Status,
    /// Microseconds since 1970, as the other times.
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub completed_at: Option<i64>,
    pub worker: Option<Uuid>,
    pub error: Option<String>,
    /// JSON.
    pub payload: String,
    /// From 1 on, among the pending tasks of its job; only while it is pending.
    pub queue_position: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct NewTask {
    pub id: Uuid,
    pub job: FullName,
    pub room: String,
    pub user: Uuid,
    /// JSON.
    pub payload: String,
    /// Refused if the job has no workers.
    pub needs_worker: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum SubmitOutcome {
    NoJob,
    NoWorkers,
    Done(Task),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    NoWorker,
    NotOwner,
    /// There is no pending task in these, the jobs of the worker.
    Nothing {
        jobs: Vec<Uuid>,
    },
    /// There are pending tasks, but other claims have locked them.
    Busy,
    Task(Task),
}

/// A change of a task's status.
#[derive(Clone, Debug)]
pub struct TaskUpdate {
    pub task: Uuid,
    pub user: Uuid,
    pub is_superuser: bool,
    pub status: Status,
    pub error: Option<String>,
    /// Only if this worker has the task: a worker that was lost does not change what another one
    /// does now.
    pub worker: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum UpdateOutcome {
    NotFound,
    /// Only the owner of its worker may change it, and no worker has claimed it.
    NotClaimed,
    /// Its worker is another user's.
    NotOwner,
    /// Another worker has the task than the one named, or none has.
    WrongWorker,
    /// Its status does not lead there.
    NoSuchTransition(Status),
    Done {
        task: Task,
        /// The job that was deleted with this, because it has no workers and no pending tasks.
        orphan: Option<FullName>,
    },
}

/// Which tasks are listed.
#[derive(Clone, Debug)]
pub struct TaskFilter {
    pub room: String,
    pub job: Option<Uuid>,
    pub status: Option<Status>,
}

/// Removed workers, and what was removed with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostWorkers {
    /// The workers themselves.
    pub workers: Vec<Uuid>,
    /// Failed, or pending again.
    pub tasks: Vec<Task>,
    /// The jobs that they did.
    pub jobs: Vec<FullName>,
    /// With their ids.
    pub providers: Vec<(FullName, Uuid)>,
}

impl LostWorkers {
    pub fn add(&mut self, other: Self) {
        self.workers.extend(other.workers);
        self.tasks.extend(other.tasks);
        self.jobs.extend(other.jobs);
        self.providers.extend(other.providers);
    }
}

/// The ages at which the sweep acts. Microseconds.
#[derive(Clone, Copy, Debug)]
pub struct SweepAges {
    /// Without a heartbeat for so long a worker is lost.
    pub worker: i64,
    /// A task of `@internal` that took so long has failed.
    pub internal: i64,
    /// An ended task is deleted after so long.
    pub kept: i64,
    /// Workers and tasks at once.
    pub limit: i64,
}

#[derive(Clone, Debug, Default)]
pub struct SweepOutcome {
    pub loss: LostWorkers,
    /// How many ended tasks were deleted.
    pub deleted_tasks: i64,
    /// Microseconds until the next sweep is due.
    pub next: Option<i64>,
    /// There is more to sweep already.
    pub is_more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowed_transitions_of_each_state() {
        let table = Status::ALL.map(|from| {
            let next = Status::ALL.into_iter().filter(|to| from.leads_to(*to));
            let next: Vec<_> = next.map(Status::name).collect();
            format!("{from}: {}", next.join(", "))
        });
        insta::assert_snapshot!(table.join("\n"), @"
        pending: claimed, cancelled
        claimed: running, failed, cancelled
        running: completed, failed, cancelled
        completed: 
        failed: 
        cancelled: 
        ");
    }
}
