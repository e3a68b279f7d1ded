//! The answers, field by field in zndraw-joblib's order.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    job::Job,
    page::{ListPage, Page},
    provider::Provider,
    task::Task,
    time::shown,
    worker::{Worker, WorkerSummary},
};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkerResponse {
    id: Uuid,
    #[schema(example = "2026-11-15T22:35:37.242058Z")]
    last_heartbeat: String,
}

impl From<Worker> for WorkerResponse {
    fn from(worker: Worker) -> Self {
        Self {
            id: worker.id,
            last_heartbeat: shown(worker.last_heartbeat),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkerSummary)]
pub(super) struct WorkerItem {
    id: Uuid,
    last_heartbeat: String,
    job_count: i64,
}

impl From<WorkerSummary> for WorkerItem {
    fn from(summary: WorkerSummary) -> Self {
        Self {
            id: summary.worker.id,
            last_heartbeat: shown(summary.worker.last_heartbeat),
            job_count: summary.job_count,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JobResponse {
    id: Uuid,
    room_id: String,
    category: String,
    name: String,
    full_name: String,
    #[schema(value_type = Object)]
    schema: Box<RawValue>,
    workers: Vec<Uuid>,
    worker_id: Option<Uuid>,
}

impl JobResponse {
    pub(super) fn new(job: Job, worker_id: Option<Uuid>) -> Self {
        Self {
            id: job.id,
            full_name: job.name.to_string(),
            room_id: job.name.room,
            category: job.name.category,
            name: job.name.name,
            schema: raw(job.schema),
            workers: job.workers,
            worker_id,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobSummary)]
pub(super) struct JobItem {
    full_name: String,
    category: String,
    name: String,
    workers: Vec<Uuid>,
}

impl From<Job> for JobItem {
    fn from(job: Job) -> Self {
        Self {
            full_name: job.name.to_string(),
            category: job.name.category,
            name: job.name.name,
            workers: job.workers,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskResponse {
    id: Uuid,
    job_name: String,
    room_id: String,
    #[schema(example = "pending")]
    status: &'static str,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    worker_id: Option<Uuid>,
    error: Option<String>,
    #[schema(value_type = Object)]
    payload: Box<RawValue>,
    /// From 1 on, while it is pending.
    queue_position: Option<i64>,
}

impl From<Task> for TaskResponse {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            job_name: task.job_name,
            room_id: task.room,
            status: task.status.name(),
            created_at: shown(task.created_at),
            started_at: task.started_at.map(shown),
            completed_at: task.completed_at.map(shown),
            worker_id: task.worker,
            error: task.error,
            payload: raw(task.payload),
            queue_position: task.queue_position,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProviderResponse {
    id: Uuid,
    room_id: String,
    category: String,
    name: String,
    full_name: String,
    #[schema(value_type = Object)]
    schema: Box<RawValue>,
    worker_id: Option<Uuid>,
    created_at: String,
}

impl From<Provider> for ProviderResponse {
    fn from(provider: Provider) -> Self {
        Self {
            id: provider.id,
            full_name: provider.name.to_string(),
            room_id: provider.name.room,
            category: provider.name.category,
            name: provider.name.name,
            schema: raw(provider.schema),
            worker_id: provider.worker,
            created_at: shown(provider.created_at),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageResponse<T> {
    items: Vec<T>,
    total: i64,
    limit: i64,
    offset: i64,
}

impl<T> PageResponse<T> {
    pub(super) fn new<U: Into<T>>(paged: ListPage<U>, page: Page) -> Self {
        Self {
            items: paged.items.into_iter().map(Into::into).collect(),
            total: paged.total,
            limit: page.limit,
            offset: page.offset,
        }
    }
}

/// The text was JSON when it was stored.
fn raw(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
