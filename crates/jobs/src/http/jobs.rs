//! `/v1/joblib/rooms/{room}/jobs`

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use uuid::Uuid;
use wakeline_web::LimitedBody;

use super::{
    fields::{Fields, Listing, Parts1, Parts2},
    shapes::{JobItem, JobResponse, PageResponse, TaskResponse},
};
use crate::{
    caller::{Caller, Visitor},
    error::Error,
    service::{Jobs, Offer},
};

#[derive(Debug, utoipa::ToSchema)]
#[allow(dead_code, reason = "only described; read field by field")]
pub(super) struct JobRegisterRequest {
    category: String,
    name: String,
    /// JSON Schema of the payload. `schema_` is taken too.
    #[schema(value_type = Option<Object>)]
    schema: Option<serde_json::Value>,
    /// Without one, a worker is made.
    worker_id: Option<Uuid>,
    /// How often a task is tried again whose worker was lost; 0 by default: it fails.
    max_retries: Option<i32>,
}

/// A worker says that it does this job.
#[utoipa::path(
    put, path = "/v1/joblib/rooms/{room_id}/jobs", tag = "jobs",
    params(("room_id" = String, Path)),
    request_body = JobRegisterRequest,
    responses(
        (status = 201, description = "New, or back", body = JobResponse),
        (status = 200, description = "There already", body = JobResponse),
        (status = 400, description = "The category or the room's name"),
        (status = 403, description = "@global takes a superuser"),
        (status = 404, description = "No such worker"),
        (status = 409, description = "It has another schema"),
        (status = 422, description = "A field"),
    )
)]
pub(super) async fn register(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(room): Parts1,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<JobResponse>), Error> {
    let mut fields = Fields::parse(&body)?;
    let offer = offer(&mut fields);
    let most = door.settings().max_retries.into();
    let retries = fields.number("max_retries", 0..=most).unwrap_or(0);
    fields.end()?;
    let retries = i32::try_from(retries).unwrap_or(i32::MAX);
    let (job, worker, is_new) = door.register_job(caller, &room, offer, retries).await?;
    Ok((created(is_new), Json(JobResponse::new(job, Some(worker)))))
}

/// What jobs and providers are registered with. The real client sends `schema_`.
pub(super) fn offer(fields: &mut Fields) -> Offer {
    Offer {
        category: fields.required("category"),
        name: fields.required("name"),
        schema: fields.object(&["schema", "schema_"]),
        worker: fields.uuid("worker_id"),
    }
}

pub(super) fn created(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// What this room can have done, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/jobs", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<JobItem>), (status = 400, description = "The room's name"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    Visitor(_visitor): Visitor,
    Parts1(room): Parts1,
    listing: Listing,
) -> Result<Json<PageResponse<JobItem>>, Error> {
    let jobs = door.jobs(&room, listing.page).await?;
    Ok(Json(PageResponse::new(jobs, listing.page)))
}

/// One job; with `/tasks` behind its name, its tasks in this room, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/jobs/{*job_name}", tag = "jobs",
    params(
        ("room_id" = String, Path), ("job_name" = String, Path, description = "room:category:name, or that and /tasks"),
        ("status" = Option<String>, Query), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)
    ),
    responses((status = 200, body = JobResponse), (status = 404, description = "No such job"))
)]
pub(super) async fn one(
    State(door): State<Arc<Jobs>>,
    Visitor(_visitor): Visitor,
    Parts2(room, name): Parts2,
    listing: Listing,
) -> Result<Response, Error> {
    if let Some(name) = name.strip_suffix("/tasks") {
        let tasks = door
            .job_tasks(&room, name, listing.status, listing.page)
            .await?;
        let page: PageResponse<TaskResponse> = PageResponse::new(tasks, listing.page);
        return Ok(Json(page).into_response());
    }
    let job = door.job(&room, &name).await?;
    Ok(Json(JobResponse::new(job, None)).into_response())
}
