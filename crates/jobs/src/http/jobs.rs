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
    fields::{JsonObject, ListQuery, PathParam, PathParams, body_within, request_body},
    shapes::{JobItem, JobResponse, PageResponse, TaskResponse},
};
use crate::{
    caller::{Caller, ListCaller},
    error::Error,
    service::{Jobs, Offer},
};

request_body! {
    pub(super) struct JobRegisterRequest {
        category: String,
        name: String,
        /// JSON Schema of the payload. `schema_` is accepted too.
        #[schema(value_type = Option<Object>)]
        schema: JsonObject,
        /// Without it, a worker is created.
        worker_id: Option<Uuid>,
        /// How often a task whose worker was lost becomes pending again; 0 by default: it fails.
        max_retries: Option<i64>,
    }
}

/// Registers a job for a worker.
#[utoipa::path(
    put, path = "/v1/joblib/rooms/{room_id}/jobs", tag = "jobs",
    params(("room_id" = String, Path)),
    request_body = JobRegisterRequest,
    responses(
        (status = 201, description = "New, or restored", body = JobResponse),
        (status = 200, description = "It existed", body = JobResponse),
        (status = 400, description = "The category or the room's name is not valid"),
        (status = 403, description = "@global takes a superuser"),
        (status = 404, description = "No such worker"),
        (status = 409, description = "The job has another schema"),
        (status = 422, description = "A field does not fit; the detail names it"),
    )
)]
pub(super) async fn register(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(room): PathParam,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<JobResponse>), Error> {
    let most = door.settings().max_retries.into();
    let body: JobRegisterRequest = body_within(&body, most)?;
    let retries = i32::try_from(body.max_retries.unwrap_or(0)).unwrap_or(i32::MAX);
    let offer = Offer {
        category: body.category,
        name: body.name,
        schema: body.schema.0,
        worker: body.worker_id,
    };
    let (job, worker, is_new) = door.register_job(caller, &room, offer, retries).await?;
    Ok((created(is_new), Json(JobResponse::new(job, Some(worker)))))
}

pub(super) fn created(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// The jobs that this room sees, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/jobs", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<JobItem>), (status = 400, description = "The room's name is not valid"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    ListCaller(_visitor): ListCaller,
    PathParam(room): PathParam,
    query: ListQuery,
) -> Result<Json<PageResponse<JobItem>>, Error> {
    let jobs = door.jobs(&room, query.page).await?;
    Ok(Json(PageResponse::new(jobs, query.page)))
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
    ListCaller(_visitor): ListCaller,
    PathParams(room, name): PathParams,
    query: ListQuery,
) -> Result<Response, Error> {
    if let Some(name) = name.strip_suffix("/tasks") {
        let tasks = door
            .tasks(&room, Some(name), query.status, query.page)
            .await?;
        let page: PageResponse<TaskResponse> = PageResponse::new(tasks, query.page);
        return Ok(Json(page).into_response());
    }
    let job = door.job(&room, &name).await?;
    Ok(Json(JobResponse::new(job, None)).into_response())
}
