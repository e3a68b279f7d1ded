//! `/v1/joblib/workers`

use std::sync::Arc;

use axum::{Json, extract::State};
use http::{HeaderMap, StatusCode};

use super::{
    fields::{ListQuery, PathParam, id},
    no_content,
    shapes::{PageResponse, WorkerItem, WorkerResponse},
};
use crate::{
    caller::{Caller, ListCaller},
    error::Error,
    service::Jobs,
};

/// Creates a worker. It is lost when it stops sending heartbeats.
#[utoipa::path(
    post, path = "/v1/joblib/workers", tag = "jobs",
    responses((status = 201, body = WorkerResponse), (status = 401, description = "No valid token"))
)]
pub(super) async fn create(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
) -> Result<(StatusCode, Json<WorkerResponse>), Error> {
    let worker = door.create_worker(caller).await?;
    Ok((StatusCode::CREATED, Json(worker.into())))
}

/// All workers, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/workers", tag = "jobs",
    params(("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<WorkerItem>), (status = 422, description = "`limit` or `offset` is not valid"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    ListCaller(_visitor): ListCaller,
    query: ListQuery,
) -> Result<Json<PageResponse<WorkerItem>>, Error> {
    let workers = door.workers(query.page).await?;
    Ok(Json(PageResponse::new(workers, query.page)))
}

/// A heartbeat; only its owner may send it.
#[utoipa::path(
    patch, path = "/v1/joblib/workers/{worker_id}", tag = "jobs",
    params(("worker_id" = uuid::Uuid, Path)),
    responses(
        (status = 200, body = WorkerResponse),
        (status = 403, description = "It belongs to another user"),
        (status = 404, description = "No such worker: register again"),
    )
)]
pub(super) async fn heartbeat(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(worker): PathParam,
) -> Result<Json<WorkerResponse>, Error> {
    let worker = id("worker_id", &worker)?;
    Ok(Json(door.heartbeat(caller, worker).await?.into()))
}

/// Removes a worker: its tasks fail or become pending again, and its jobs and providers go.
#[utoipa::path(
    delete, path = "/v1/joblib/workers/{worker_id}", tag = "jobs",
    params(("worker_id" = uuid::Uuid, Path)),
    responses(
        (status = 204, description = "Removed"),
        (status = 403, description = "It belongs to another user"),
        (status = 404, description = "No such worker"),
    )
)]
pub(super) async fn remove(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(worker): PathParam,
) -> Result<(StatusCode, HeaderMap), Error> {
    let worker = id("worker_id", &worker)?;
    door.remove_worker(caller, worker).await?;
    Ok(no_content())
}

/// The workers of the jobs that this room sees.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/workers", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<WorkerItem>), (status = 400, description = "The room's name is not valid"))
)]
pub(super) async fn of_room(
    State(door): State<Arc<Jobs>>,
    ListCaller(_visitor): ListCaller,
    PathParam(room): PathParam,
    query: ListQuery,
) -> Result<Json<PageResponse<WorkerItem>>, Error> {
    let workers = door.room_workers(&room, query.page).await?;
    Ok(Json(PageResponse::new(workers, query.page)))
}
