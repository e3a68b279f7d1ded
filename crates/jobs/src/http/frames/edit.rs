//! Routes that change the frames of a room. Their answers do not repeat the frames.

use std::sync::Arc;

use axum::{Json, extract::State};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use wakeline_web::LimitedBody;

use super::{
    super::{rooms::named, signed::SignedCaller},
    InRoom, OneOfRoom, place, upload,
};
use crate::{error::Error, frames::Frames};

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AppendedAnswer {
    /// How many the room has now.
    total: i64,
    /// The index of the first appended frame, and the index after the last.
    start: i64,
    stop: i64,
}

/// Appends frames, all or none: `{"frames": […]}` as JSON, or an array of maps in MessagePack.
#[utoipa::path(
    post, path = "/v1/rooms/{room}/frames", tag = "frames",
    params(("room" = String, Path)),
    request_body(content(
        (Object = "application/json"),
        (Vec<u8> = "application/x-msgpack"),
    )),
    responses(
        (status = 201, description = "They are stored", body = AppendedAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`"),
        (status = 409, description = "`room-read-only`: the frames are a provider's"),
        (status = 422, description = "`unprocessable-content`; the detail names the frame and the key"),
        (status = 423, description = "`room-locked`: another user has locked it"),
    )
)]
pub(in crate::http) async fn append(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    room: InRoom,
    headers: HeaderMap,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<AppendedAnswer>), Error> {
    let uploaded = upload::several(&headers, &body, frames.limits())?;
    let (start, total) = frames.append(caller, named(room)?, uploaded).await?;
    let stop = total;
    Ok((
        StatusCode::CREATED,
        Json(AppendedAnswer { total, start, stop }),
    ))
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ReplacedAnswer {
    index: i64,
}

/// Replaces a frame: `{"data": …}` as JSON, or a map in MessagePack.
#[utoipa::path(
    put, path = "/v1/rooms/{room}/frames/{index}", tag = "frames",
    params(("room" = String, Path), ("index" = i64, Path)),
    request_body(content(
        (Object = "application/json"),
        (Vec<u8> = "application/x-msgpack"),
    )),
    responses(
        (status = 200, description = "Done", body = ReplacedAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 409, description = "`room-read-only`: the frames are a provider's"),
        (status = 422, description = "`unprocessable-content`; the detail names the key"),
        (status = 423, description = "`room-locked`: another user has locked it"),
    )
)]
pub(in crate::http) async fn replace(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    at: OneOfRoom,
    headers: HeaderMap,
    LimitedBody(body): LimitedBody,
) -> Result<Json<ReplacedAnswer>, Error> {
    let (room, index) = place(at)?;
    let frame = upload::whole(&headers, &body, frames.limits().frame)?;
    frames.replace(caller, room, index, frame).await?;
    Ok(Json(ReplacedAnswer { index }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct MergedAnswer {
    index: i64,
    updated_keys: Vec<String>,
}

/// Sets keys of a frame: a map in MessagePack. The other keys stay.
#[utoipa::path(
    patch, path = "/v1/rooms/{room}/frames/{index}", tag = "frames",
    params(("room" = String, Path), ("index" = i64, Path)),
    request_body(content = Vec<u8>, content_type = "application/x-msgpack"),
    responses(
        (status = 200, description = "Done", body = MergedAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 409, description = "`room-read-only`: the frames are a provider's"),
        (status = 422, description = "`unprocessable-content`; the detail says why"),
        (status = 423, description = "`room-locked`: another user has locked it"),
    )
)]
pub(in crate::http) async fn merge(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    at: OneOfRoom,
    headers: HeaderMap,
    LimitedBody(body): LimitedBody,
) -> Result<Json<MergedAnswer>, Error> {
    let (room, index) = place(at)?;
    let part = upload::part(&headers, &body, frames.limits().frame)?;
    let updated_keys = part.keys();
    frames.merge(caller, room, index, part).await?;
    Ok(Json(MergedAnswer {
        index,
        updated_keys,
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeletedAnswer {
    /// `ok`
    status: &'static str,
}

/// Deletes a frame. Later frames move up.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/frames/{index}", tag = "frames",
    params(("room" = String, Path), ("index" = i64, Path)),
    responses(
        (status = 200, description = "Done", body = DeletedAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 409, description = "`room-read-only`: the frames are a provider's"),
        (status = 423, description = "`room-locked`: another user has locked it"),
    )
)]
pub(in crate::http) async fn delete(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    at: OneOfRoom,
) -> Result<Json<DeletedAnswer>, Error> {
    let (room, index) = place(at)?;
    frames.delete(caller, room, index).await?;
    Ok(Json(DeletedAnswer { status: "ok" }))
}
