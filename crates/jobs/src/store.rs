//! The durable steps. Two implementations: [`sqlite`] and [`postgres`].

pub mod frames;
pub mod postgres;
pub mod sqlite;
mod users;

use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error;

use crate::{
    job::{Job, NewJob, Registered},
    name::FullName,
    page::{Page, Paged},
    provider::{NewProvider, Provider, ProviderFilter, ProviderRegistered},
    results::Look,
    task::{Claimed, Loss, NewTask, Submitted, Swept, Task, TaskFilter, Terms, Update, Updated},
    topic::Wait,
    worker::{Owned, Worker, WorkerSummary},
};

pub use self::users::Users;

/// What a read gives.
pub type Step<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Each method is one atomic step. One that returns a [`Write`] shares its commit with whatever else
/// arrived in the same moment, and says whom it wakes.
///
/// Whose clock rules: SQLite's is the process', PostgreSQL's is the database server's, so that
/// nodes agree on when a worker is lost.
pub trait Store: Workers + Jobs + Tasks + Providers + Send + Sync + std::fmt::Debug {}

impl<S: Workers + Jobs + Tasks + Providers + Send + Sync + std::fmt::Debug> Store for S {}

pub trait Workers {
    fn create_worker(&self, user: Uuid) -> Write<Worker>;

    /// Only its owner's heart can beat for it.
    fn heartbeat(&self, worker: Uuid, user: Uuid) -> Write<Owned<Worker>>;

    /// Whose it is.
    fn worker_owner(&self, worker: Uuid) -> Step<'_, Option<Uuid>>;

    /// With everything that it has: its tasks fail or go back into the line, its providers go.
    /// `user`: only if it is this one's.
    fn remove_worker(&self, worker: Uuid, user: Option<Uuid>) -> Write<Owned<Loss>>;

    /// Newest first.
    fn workers(&self, page: Page) -> Step<'_, Paged<WorkerSummary>>;

    /// Those that do jobs of one of the scopes.
    fn workers_of(&self, scopes: Vec<String>, page: Page) -> Step<'_, Paged<WorkerSummary>>;

    /// Removes a slice of what is over. Asked when something may be, not at an interval.
    fn sweep(&self, terms: Terms) -> Write<Swept>;
}

pub trait Jobs {
    fn register_job(&self, job: NewJob) -> Write<Registered>;

    /// Newest first.
    fn jobs(&self, scopes: Vec<String>, page: Page) -> Step<'_, Paged<Job>>;

    fn job(&self, name: FullName) -> Step<'_, Option<Job>>;
}

pub trait Tasks {
    fn submit(&self, task: NewTask) -> Write<Submitted>;

    /// The task of the worker's jobs that has waited longest. Never waits for another claim.
    fn claim(&self, worker: Uuid, user: Uuid) -> Write<Claimed>;

    /// The task goes back to its place in the line, if the worker has it still and has not begun
    /// with it. A retry that a loss would cost is not counted.
    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>>;

    fn task(&self, task: Uuid) -> Step<'_, Option<Task>>;

    fn update(&self, update: Update) -> Write<Updated>;

    /// Newest first.
    fn tasks(&self, filter: TaskFilter, page: Page) -> Step<'_, Paged<Task>>;

    /// Which of these can be answered now; in one statement.
    fn ready(&self, waits: Vec<Wait>) -> Step<'_, Vec<Wait>>;
}

pub trait Providers {
    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistered>;

    /// Newest first.
    fn providers(&self, filter: ProviderFilter, page: Page) -> Step<'_, Paged<Provider>>;

    /// The one of this category that was registered last in the room.
    fn newest_provider(&self, room: String, category: &'static str) -> Step<'_, Option<Provider>>;

    /// What is registered under each name; in one statement.
    fn find_providers(&self, names: Vec<FullName>) -> Step<'_, Vec<Option<Provider>>>;

    /// The same, with what this database keeps of their answers to these hashes; in one statement.
    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> Step<'_, Vec<Option<(Provider, Look)>>>;

    fn provider(&self, provider: Uuid) -> Step<'_, Option<Provider>>;

    /// `user`: only if it is this one's.
    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>>;

    /// A beat of its worker's heart.
    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>>;
}

/// As both databases keep it.
pub(crate) fn in_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
