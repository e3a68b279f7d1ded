//! `/v1/rooms/{room}/frames`

mod edit;
mod upload;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    Json,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{HeaderMap, HeaderValue, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{Params, Prefer, Timing, path};

use super::{
    rooms::{named, number, unprocessable},
    signed::SignedCaller,
};
use crate::{
    error::Error,
    frame::{Property, msgpack::put_array},
    frames::{FrameSelection, Frames},
    name,
};

const MSGPACK: HeaderValue = HeaderValue::from_static("application/x-msgpack");
const PREFERENCE_APPLIED: &str = "preference-applied";

type InRoom = Result<Path<String>, PathRejection>;
type OneOfRoom = Result<Path<(String, String)>, PathRejection>;

pub fn router(frames: Arc<Frames>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, edit::append))
        .routes(routes!(one, edit::replace, edit::merge, edit::delete))
        .routes(routes!(metadata))
        .with_state(frames)
}

/// Frames of a room, as an array of maps in MessagePack. The read is held until the room's provider
/// has supplied its frames.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/frames", tag = "frames",
    params(
        ("room" = String, Path),
        ("start" = Option<i64>, Query, description = "The first, 0 by default"),
        ("stop" = Option<i64>, Query, description = "The one after the last; as far as there are any by default"),
        ("indices" = Option<String>, Query, description = "Instead: these, separated by commas"),
        ("keys" = Option<String>, Query, description = "Only what they have of these keys, separated by commas"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how long a provider is waited for"),
    ),
    responses(
        (status = 200, description = "The frames", content_type = "application/x-msgpack"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 422, description = "`unprocessable-content`; the detail names the parameter"),
        (status = 504, description = "`provider-timeout`: the provider did not answer in time; asking again is safe"),
    )
)]
pub(super) async fn list(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    room: InRoom,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Error> {
    let wanted = wanted(&params)?;
    let wait = frames.wait(prefer.wait);
    let reading = frames.frames(caller, named(room)?, wanted, keys(&params), wait);
    let mut reading = reading.await?;
    // The first frames are read before the answer begins, so that most failures are still answered
    // as a problem.
    let begin = reading.begin().await?;
    let timing = reading.timing;
    let body = if reading.left() == 0 {
        Body::from(begin)
    } else {
        let rest = reading.rest().inspect_err(|error| {
            tracing::warn!(%error, "an answer with frames broke off");
        });
        Body::from_stream(stream::iter([Ok(begin)]).chain(rest))
    };
    Ok(answer(body, held(timing, prefer, wait)))
}

/// One frame, as an array with one map in MessagePack.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/frames/{index}", tag = "frames",
    params(
        ("room" = String, Path), ("index" = i64, Path),
        ("keys" = Option<String>, Query, description = "Only what it has of these keys, separated by commas"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how long a provider is waited for"),
    ),
    responses(
        (status = 200, description = "The frame", content_type = "application/x-msgpack"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 504, description = "`provider-timeout`: the provider did not answer in time; asking again is safe"),
    )
)]
pub(super) async fn one(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    at: OneOfRoom,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Error> {
    let (room, index) = place(at)?;
    let wait = frames.wait(prefer.wait);
    let (frame, timing) = frames.frame(caller, room, index, wait).await?;
    let frame = match keys(&params) {
        Some(keys) => frame.only(&keys),
        None => frame,
    };
    let mut out = Vec::with_capacity(1 + frame.bytes().len());
    put_array(&mut out, 1);
    out.extend_from_slice(frame.bytes());
    Ok(answer(Body::from(out), held(timing, prefer, wait)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MetadataAnswer {
    frame_id: i64,
    metadata: BTreeMap<String, PropertyAnswer>,
    source_room: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PropertyAnswer {
    /// NumPy's word for it.
    dtype: String,
    shape: Option<Vec<u64>>,
    /// `array` or `scalar`
    #[serde(rename = "type")]
    kind: &'static str,
}

impl From<Property> for PropertyAnswer {
    fn from(property: Property) -> Self {
        match property {
            Property::Array { dtype, shape } => Self {
                dtype,
                shape: Some(shape),
                kind: "array",
            },
            Property::Scalar { dtype } => Self {
                dtype: dtype.to_owned(),
                shape: None,
                kind: "scalar",
            },
        }
    }
}

/// The keys of a frame, without its data.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/frames/{index}/metadata", tag = "frames",
    params(
        ("room" = String, Path), ("index" = i64, Path),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: how long a provider is waited for"),
    ),
    responses(
        (status = 200, description = "The type and shape of each key", body = MetadataAnswer),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`, or `frame-not-found` with the range that there is"),
        (status = 504, description = "`provider-timeout`: the provider did not answer in time; asking again is safe"),
    )
)]
pub(super) async fn metadata(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    at: OneOfRoom,
    prefer: Prefer,
) -> Result<(HeaderMap, Json<MetadataAnswer>), Error> {
    let (room, index) = place(at)?;
    let wait = frames.wait(prefer.wait);
    let (frame, timing) = frames.frame(caller, room.clone(), index, wait).await?;
    let properties = frame.properties().into_iter();
    let answer = MetadataAnswer {
        frame_id: index,
        metadata: properties
            .map(|(key, property)| (key, property.into()))
            .collect(),
        source_room: room,
    };
    Ok((held(timing, prefer, wait), Json(answer)))
}

fn answer(body: Body, headers: HeaderMap) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response.headers_mut().insert(header::CONTENT_TYPE, MSGPACK);
    response
}

/// The headers of an answer that was held.
fn held(timing: Option<Timing>, prefer: Prefer, wait: Duration) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(timing) = timing {
        timing.write(&mut headers);
        if let Some(applied) = prefer.applied(wait) {
            headers.insert(PREFERENCE_APPLIED, applied);
        }
    }
    headers
}

fn place(at: OneOfRoom) -> Result<(String, i64), Error> {
    let (room, index) = path(at)?;
    name::check_room(&room)?;
    let index = whole("path.index", &index)?;
    Ok((room, index))
}

fn whole(at: &str, text: &str) -> Result<i64, Error> {
    let number = text.trim().parse();
    number.map_err(|_| {
        unprocessable(format!(
            "{at}: Input should be a valid integer, unable to parse string as an integer"
        ))
    })
}

fn wanted(params: &Params) -> Result<FrameSelection, Error> {
    let indices = params.text("indices").filter(|indices| !indices.is_empty());
    if let Some(indices) = indices {
        let numbers = indices
            .split(',')
            .map(|index| whole("query.indices", index));
        return Ok(FrameSelection::Numbers(numbers.collect::<Result<_, _>>()?));
    }
    Ok(FrameSelection::Range {
        start: number(params, "start", i64::MAX)?.unwrap_or(0),
        stop: number(params, "stop", i64::MAX)?,
    })
}

fn keys(params: &Params) -> Option<HashSet<Vec<u8>>> {
    let keys = params.text("keys").filter(|keys| !keys.is_empty())?;
    Some(
        keys.split(',')
            .map(|key| key.trim().as_bytes().to_vec())
            .collect(),
    )
}
