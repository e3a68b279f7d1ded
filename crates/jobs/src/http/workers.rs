//! `/v1/joblib/workers`

use std::sync::Arc;

use axum::{Json, extract::State};
use http::{HeaderMap, StatusCode};

use super::{
    fields::{Listing, Parts1, id},
    no_content,
    shapes::{PageResponse, WorkerItem, WorkerResponse},
};
use crate::{
    caller::{Caller, Visitor},
    error::Error,
    service::Jobs,
};

/// Makes a worker, which lives for as long as its heart beats.
#[utoipa::path(
    post, path = "/v1/joblib/workers", tag = "jobs",
    responses((status = 201, body = WorkerResponse), (status = 401, description = "Who are you?"))
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
    responses((status = 200, body = PageResponse<WorkerItem>), (status = 422, description = "limit or offset"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    Visitor(_visitor): Visitor,
    listing: Listing,
) -> Result<Json<PageResponse<WorkerItem>>, Error> {
    let workers = door.workers(listing.page).await?;
    Ok(Json(PageResponse::new(workers, listing.page)))
}

/// A beat of its heart; only its owner's.
#[utoipa::path(
    patch, path = "/v1/joblib/workers/{worker_id}", tag = "jobs",
    params(("worker_id" = uuid::Uuid, Path)),
    responses(
        (status = 200, body = WorkerResponse),
        (status = 403, description = "Another user's"),
        (status = 404, description = "No such worker: register again"),
    )
)]
pub(super) async fn heartbeat(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(worker): Parts1,
) -> Result<Json<WorkerResponse>, Error> {
    let worker = id("worker_id", &worker)?;
    Ok(Json(door.heartbeat(caller, worker).await?.into()))
}

/// Ends a worker: its tasks fail or go back into the line, its jobs and providers go.
#[utoipa::path(
    delete, path = "/v1/joblib/workers/{worker_id}", tag = "jobs",
    params(("worker_id" = uuid::Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "Another user's"),
        (status = 404, description = "No such worker"),
    )
)]
pub(super) async fn remove(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(worker): Parts1,
) -> Result<(StatusCode, HeaderMap), Error> {
    let worker = id("worker_id", &worker)?;
    door.remove_worker(caller, worker).await?;
    Ok(no_content())
}

/// Those that do jobs which this room sees.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/workers", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<WorkerItem>), (status = 400, description = "The room's name"))
)]
pub(super) async fn of_room(
    State(door): State<Arc<Jobs>>,
    Visitor(_visitor): Visitor,
    Parts1(room): Parts1,
    listing: Listing,
) -> Result<Json<PageResponse<WorkerItem>>, Error> {
    let workers = door.room_workers(&room, listing.page).await?;
    Ok(Json(PageResponse::new(workers, listing.page)))
}
