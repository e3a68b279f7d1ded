//! `/v1/rooms/{room}/progress`

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{LimitedBody, path};

use super::{
    no_content,
    rooms::{json, named, unprocessable},
    signed::SignedCaller,
};
use crate::{
    error::Error,
    frames::Frames,
    name,
    progress::{NewTracker, Tracker, TrackerChange},
};

pub fn router(frames: Arc<Frames>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(start))
        .routes(routes!(update, end))
        .with_state(frames)
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ProgressBody {
    /// Chosen by the client; a tracker with the same id begins anew.
    progress_id: String,
    description: String,
    /// `it` by default.
    unit: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ProgressUpdateBody {
    description: Option<String>,
    n: Option<i64>,
    total: Option<i64>,
    /// Seconds.
    elapsed: Option<f64>,
    unit: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ProgressAnswer {
    progress_id: String,
    description: String,
    n: i64,
    total: Option<i64>,
    /// Seconds.
    elapsed: f64,
    unit: String,
}

impl From<Tracker> for ProgressAnswer {
    fn from(tracker: Tracker) -> Self {
        Self {
            progress_id: tracker.id,
            description: tracker.description,
            n: tracker.n,
            total: tracker.total,
            elapsed: tracker.elapsed.as_secs_f64(),
            unit: tracker.unit,
        }
    }
}

/// Starts a progress tracker, which the clients in the room see. One that is not updated for an hour
/// is removed.
#[utoipa::path(
    post, path = "/v1/rooms/{room}/progress", tag = "rooms",
    params(("room" = String, Path)),
    request_body = ProgressBody,
    responses(
        (status = 201, description = "It has started", body = ProgressAnswer),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`"),
        (status = 422, description = "`unprocessable-content`; the detail names the field"),
    )
)]
pub(super) async fn start(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    room: Result<Path<String>, PathRejection>,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<ProgressAnswer>), Error> {
    let body: ProgressBody = json(&body)?;
    let tracker = NewTracker {
        id: body.progress_id,
        description: body.description,
        unit: body.unit.unwrap_or_else(|| "it".to_owned()),
    };
    let tracker = frames.start_progress(named(room)?, tracker).await?;
    Ok((StatusCode::CREATED, Json(tracker.into())))
}

/// Changes the given fields of a progress tracker.
#[utoipa::path(
    patch, path = "/v1/rooms/{room}/progress/{progress}", tag = "rooms",
    params(("room" = String, Path), ("progress" = String, Path, description = "Its `progress_id`")),
    request_body = ProgressUpdateBody,
    responses(
        (status = 200, description = "The tracker now", body = ProgressAnswer),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found` or `progress-not-found`"),
        (status = 422, description = "`unprocessable-content`; the detail names the field"),
    )
)]
pub(super) async fn update(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    at: Result<Path<(String, String)>, PathRejection>,
    LimitedBody(body): LimitedBody,
) -> Result<Json<ProgressAnswer>, Error> {
    let (room, id) = place(at)?;
    let body: ProgressUpdateBody = json(&body)?;
    for (field, number) in [("n", body.n), ("total", body.total)] {
        if number.is_some_and(i64::is_negative) {
            let refused = format!("body.{field}: a whole number, 0 or more, is expected");
            return Err(unprocessable(refused));
        }
    }
    let elapsed = body.elapsed.map(seconds).transpose()?;
    let change = TrackerChange {
        description: body.description,
        unit: body.unit,
        n: body.n,
        total: body.total,
        elapsed,
    };
    let tracker = frames.update_progress(room, id, change).await?;
    Ok(Json(tracker.into()))
}

/// Ends a progress tracker and removes it.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/progress/{progress}", tag = "rooms",
    params(("room" = String, Path), ("progress" = String, Path, description = "Its `progress_id`")),
    responses(
        (status = 204, description = "It has ended"),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found` or `progress-not-found`"),
    )
)]
pub(super) async fn end(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    at: Result<Path<(String, String)>, PathRejection>,
) -> Result<(StatusCode, HeaderMap), Error> {
    let (room, id) = place(at)?;
    frames.end_progress(room, id).await?;
    Ok(no_content())
}

fn place(at: Result<Path<(String, String)>, PathRejection>) -> Result<(String, String), Error> {
    let (room, id) = path(at)?;
    name::check_room(&room)?;
    // PostgreSQL stores no NUL, so there is no such tracker.
    Ok((room, id.replace('\0', "\u{fffd}")))
}

/// More than the store can keep is as long as it can keep.
fn seconds(elapsed: f64) -> Result<Duration, Error> {
    const LONGEST: f64 = 1e9;
    if elapsed.is_nan() || elapsed < 0.0 {
        return Err(unprocessable(
            "body.elapsed: a number of seconds, 0 or more, is expected",
        ));
    }
    Ok(Duration::from_secs_f64(elapsed.min(LONGEST)))
}
