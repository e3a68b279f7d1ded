//! `/v1/rooms/{room}/chat/messages`

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{LimitedBody, Params};

use super::{
    rooms::{json, named, unprocessable},
    signed::SignedCaller,
};
use crate::{
    error::Error,
    frames::{Frames, MessagePage},
    message::Message,
};

/// As upstream has them.
const DEFAULT_LIMIT: i64 = 30;
const MAX_LIMIT: i64 = 100;

pub fn router(frames: Arc<Frames>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(list, say))
        .with_state(frames)
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct MessageBody {
    content: String,
}

/// Sends a message to the clients in the room. A room that exists keeps its newest messages
/// (`jobs.chat_messages`). The message that zndraw-joblib's client writes when a read fails also
/// answers the readers that wait for that read.
#[utoipa::path(
    post, path = "/v1/rooms/{room}/chat/messages", tag = "rooms",
    params(("room" = String, Path)),
    request_body = MessageBody,
    responses(
        (status = 201, description = "It was sent", body = Object),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 422, description = "`unprocessable-content`; the detail names the field"),
    )
)]
pub(super) async fn say(
    State(frames): State<Arc<Frames>>,
    SignedCaller(caller): SignedCaller,
    room: Result<Path<String>, PathRejection>,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<Value>), Error> {
    let body: MessageBody = json(&body)?;
    let message = frames.say(caller, named(room)?, body.content).await?;
    Ok((StatusCode::CREATED, Json(message.document())))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessagesAnswer {
    /// The newest first.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
    metadata: MessagesMetadata,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessagesMetadata {
    /// Whether older ones follow.
    has_more: bool,
    /// How many the room keeps.
    total_count: i64,
    /// Milliseconds since 1970, for `before`.
    oldest_timestamp: Option<i64>,
    newest_timestamp: Option<i64>,
}

impl From<MessagePage> for MessagesAnswer {
    fn from(page: MessagePage) -> Self {
        let said_at = |message: &Message| message.said_at;
        Self {
            metadata: MessagesMetadata {
                has_more: page.has_more,
                total_count: page.total,
                oldest_timestamp: page.messages.last().map(said_at),
                newest_timestamp: page.messages.first().map(said_at),
            },
            items: page.messages.iter().map(Message::document).collect(),
        }
    }
}

/// The newest messages of a room. Older ones: with the answer's `oldest_timestamp` as `before`.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/chat/messages", tag = "rooms",
    params(
        ("room" = String, Path),
        ("limit" = Option<i64>, Query, description = "1 to 100, 30 by default"),
        ("before" = Option<i64>, Query, description = "Only messages from before this time, in milliseconds since 1970"),
    ),
    responses(
        (status = 200, description = "A page of messages, the newest first", body = MessagesAnswer),
        (status = 400, description = "`invalid-room-id`"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "`room-not-found`"),
        (status = 422, description = "`unprocessable-content`; the detail names the parameter"),
    )
)]
pub(super) async fn list(
    State(frames): State<Arc<Frames>>,
    _: SignedCaller,
    room: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Json<MessagesAnswer>, Error> {
    let number = |name, range: std::ops::RangeInclusive<i64>| {
        params
            .number(name, &range)
            .map_err(|problem| unprocessable(format!("query.{}", problem.detail())))
    };
    let limit = number("limit", 1..=MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
    let before = number("before", 0..=i64::MAX)?;
    let page = frames.messages(named(room)?, before, limit).await?;
    Ok(Json(page.into()))
}
