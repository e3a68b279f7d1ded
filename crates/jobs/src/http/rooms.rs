//! `/v1/rooms`

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use http::StatusCode;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{LimitedBody, Params, path};

use super::{shapes::PageResponse, signed::SignedCaller};
use crate::{error::Error, frames::Frames, name, page::Page, problem, room::Room, time::shown};

pub fn router(frames: Arc<Frames>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(one, update))
        .with_state(frames)
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RoomBody {
    room_id: String,
    /// A room whose frames are copied; `@none` (the default) for an empty room, `@empty` for one
    /// frame without keys.
    copy_from: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RoomCreatedAnswer {
    /// `ok`
    status: &'static str,
    room_id: String,
    frame_count: i64,
    created: bool,
}

/// Creates a room, unless it exists.
#[utoipa::path(
    post, path = "/v1/rooms", tag = "rooms",
    request_body = RoomBody,
    responses(
        (status = 201, description = "The room was created", body = RoomCreatedAnswer),
        (status = 200, description = "The room existed", body = RoomCreatedAnswer),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`: there is nothing to copy"),
        (status = 409, description = "`room-read-only`: what is to be copied is a provider's"),
        (status = 422, description = "`unprocessable-content`; the detail names the field"),
    )
)]
pub(super) async fn create(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<RoomCreatedAnswer>), Error> {
    let body: RoomBody = json(&body)?;
    let made = frames.create_room(caller, body.room_id, body.copy_from);
    let (room, created) = made.await?;
    let answer = RoomCreatedAnswer {
        status: "ok",
        frame_count: room.frame_count(),
        room_id: room.name,
        created,
    };
    Ok((super::jobs::created(created), Json(answer)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RoomAnswer {
    id: String,
    room_id: String,
    frame_count: i64,
    /// Its frames come from a provider, and cannot be changed here.
    mounted: bool,
    /// Only the user who locked it, or a superuser, changes it.
    locked: bool,
    created_at: String,
}

impl From<Room> for RoomAnswer {
    fn from(room: Room) -> Self {
        Self {
            frame_count: room.frame_count(),
            mounted: room.mount.is_some(),
            locked: room.locked_by.is_some(),
            id: room.name.clone(),
            room_id: room.name,
            created_at: shown(room.created_at),
        }
    }
}

/// Rooms, the newest first.
#[utoipa::path(
    get, path = "/v1/rooms", tag = "rooms",
    params(
        ("limit" = Option<i64>, Query, description = "0 to 500, 50 by default"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = PageResponse<RoomAnswer>),
        (status = 401, description = "No valid token"),
        (status = 422, description = "`unprocessable-content`; the detail names the parameter"),
    )
)]
pub(super) async fn list(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    params: Params,
) -> Result<Json<PageResponse<RoomAnswer>>, Error> {
    let limit = number(&params, "limit", Page::MAX_LIMIT)?;
    let offset = number(&params, "offset", i64::MAX)?;
    let page = Page {
        limit: limit.unwrap_or(Page::DEFAULT_LIMIT),
        offset: offset.unwrap_or(0),
    };
    let rooms = frames.rooms(page).await?;
    Ok(Json(PageResponse::new(rooms, page)))
}

#[utoipa::path(
    get, path = "/v1/rooms/{room}", tag = "rooms",
    params(("room" = String, Path)),
    responses(
        (status = 200, description = "The room", body = RoomAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`"),
    )
)]
pub(super) async fn one(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    room: Result<Path<String>, PathRejection>,
) -> Result<Json<RoomAnswer>, Error> {
    let room = frames.room(named(room)?).await?;
    Ok(Json(room.into()))
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RoomUpdate {
    /// How many frames the room's `frames` provider has; 0 gives the room back.
    frame_count: Option<i64>,
    /// Locks the room for all users but the caller and superusers, or unlocks it.
    locked: Option<bool>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RoomUpdated {
    /// `ok`
    status: &'static str,
    room_id: String,
}

/// Mounts the room: the owner of a `frames` provider of the room says how many frames it has. From
/// then on the room is read-only, and frames that are not stored are requested from the provider.
/// Locks the room, so that only the caller and superusers change it and its frames.
#[utoipa::path(
    patch, path = "/v1/rooms/{room}", tag = "rooms",
    params(("room" = String, Path)),
    request_body = RoomUpdate,
    responses(
        (status = 200, description = "Done", body = RoomUpdated),
        (status = 401, description = "No valid token"),
        (status = 403, description = "`forbidden`: the provider is another user's, or there is none"),
        (status = 404, description = "`room-not-found`"),
        (status = 422, description = "`unprocessable-content`; the detail names the field"),
        (status = 423, description = "`room-locked`: another user has locked it"),
    )
)]
pub(super) async fn update(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    room: Result<Path<String>, PathRejection>,
    LimitedBody(body): LimitedBody,
) -> Result<Json<RoomUpdated>, Error> {
    let room = named(room)?;
    let body: RoomUpdate = json(&body)?;
    // Before the lock: the caller may lock what it has just mounted.
    if let Some(count) = body.frame_count {
        frames.mount(caller, room.clone(), count).await?;
    }
    let room = match body.locked {
        Some(locked) => frames.lock(caller, room, locked).await?,
        None => frames.room(room).await?,
    };
    Ok(Json(RoomUpdated {
        status: "ok",
        room_id: room.name,
    }))
}

/// The name of a room in a path.
pub(super) fn named(room: Result<Path<String>, PathRejection>) -> Result<String, Error> {
    let room = path(room)?;
    name::check_room(&room)?;
    Ok(room)
}

/// A body as JSON.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    wakeline_web::json(body).map_err(|problem| in_body(&problem))
}

/// The problem of a body, its field named from `body`.
pub(super) fn in_body(problem: &wakeline_web::Problem) -> Error {
    let detail = problem.detail();
    let whole = detail.starts_with("body:");
    unprocessable(format!("{}{detail}", if whole { "" } else { "body." }))
}

pub(super) fn unprocessable(detail: impl Into<String>) -> Error {
    Error::problem(&problem::UNPROCESSABLE_CONTENT, detail)
}

/// A parameter that is a whole number, at least 0.
pub(super) fn number(params: &Params, name: &str, most: i64) -> Result<Option<i64>, Error> {
    params
        .number(name, &(0..=most))
        .map_err(|problem| unprocessable(format!("query.{}", problem.detail())))
}
