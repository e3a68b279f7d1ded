//! `/v1/joblib/rooms/{room}/providers` and `/v1/joblib/providers`

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{RawQuery, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use uuid::Uuid;
use wakeline_web::{LimitedBody, Prefer};

use super::{
    answer,
    fields::{Fields, Listing, Parts1, Parts2, id},
    jobs::{created, offer},
    no_content,
    shapes::{PageResponse, ProviderResponse},
    tasks::applied,
};
use crate::{
    caller::{Caller, Reader, Visitor},
    error::{Error, Unfit},
    params::Params,
    service::{Begun, Jobs},
};

const REQUEST_HASH: &str = "x-request-hash";
const RESULT_STATUS: &str = "x-result-status";
/// Characters of a hash as it comes.
const MAX_HASH: usize = 128;
const MAX_CONTENT_TYPE: usize = 255;
const MAX_TTL: u64 = 30 * 86_400;

#[derive(Debug, utoipa::ToSchema)]
#[allow(dead_code, reason = "only described; read field by field")]
pub(super) struct ProviderRegisterRequest {
    category: String,
    name: String,
    /// JSON Schema of the parameters of a read. `schema_` is taken too.
    #[schema(value_type = Option<Object>)]
    schema: Option<serde_json::Value>,
    /// Of its answers; application/json by default.
    content_type: Option<String>,
    /// Without one, a worker is made.
    worker_id: Option<Uuid>,
    /// How long its answers are kept: `max-age=N`, or `no-store`. By default as this server is set.
    cache_control: Option<String>,
}

/// A worker says that it answers reads of this.
#[utoipa::path(
    put, path = "/v1/joblib/rooms/{room_id}/providers", tag = "jobs",
    params(("room_id" = String, Path)),
    request_body = ProviderRegisterRequest,
    responses(
        (status = 201, description = "New", body = ProviderResponse),
        (status = 200, description = "Registered anew; what it answered before is not served", body = ProviderResponse),
        (status = 400, description = "The category or the room's name"),
        (status = 403, description = "Another user's, or @global without being superuser"),
        (status = 404, description = "No such worker"),
        (status = 422, description = "A field"),
    )
)]
pub(super) async fn register(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(room): Parts1,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<ProviderResponse>), Error> {
    let mut fields = Fields::parse(&body)?;
    let offer = offer(&mut fields);
    let content_type = fields.text("content_type");
    let cache_control = fields.text("cache_control");
    fields.end()?;
    let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
    if content_type.len() > MAX_CONTENT_TYPE || HeaderValue::from_str(&content_type).is_err() {
        let message = "Input should be a media type";
        let at = ["body", "content_type"];
        return Err(Unfit::new("value_error", &at, message, content_type).into());
    }
    let ttl = cache_control.map(|text| kept_for(&["body", "cache_control"], &text));
    let ttl = ttl.transpose()?.flatten();
    let (provider, is_new) = door
        .register_provider(caller, &room, offer, content_type, ttl)
        .await?;
    Ok((created(is_new), Json(provider.into())))
}

/// How long `Cache-Control` lets an answer be kept, if it says.
fn kept_for(at: &[&str], text: &str) -> Result<Option<Duration>, Error> {
    for directive in text.split(',').map(str::trim) {
        if directive.eq_ignore_ascii_case("no-store") || directive.eq_ignore_ascii_case("no-cache")
        {
            return Ok(Some(Duration::ZERO));
        }
        let Some((name, value)) = directive.split_once('=') else {
            continue;
        };
        if !name.trim().eq_ignore_ascii_case("max-age") {
            continue;
        }
        return match value.trim().trim_matches('"').parse::<u64>() {
            Ok(seconds) if seconds <= MAX_TTL => Ok(Some(Duration::from_secs(seconds))),
            _ => {
                let message =
                    format!("max-age should be a whole number of seconds, 0 to {MAX_TTL}");
                Err(Unfit::new("value_error", at, message, text).into())
            }
        };
    }
    Ok(None)
}

/// What this room can read, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/providers", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<ProviderResponse>), (status = 400, description = "The room's name"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    Visitor(visitor): Visitor,
    Parts1(room): Parts1,
    listing: Listing,
) -> Result<Json<PageResponse<ProviderResponse>>, Error> {
    let providers = door.providers(visitor, &room, listing.page).await?;
    Ok(Json(PageResponse::new(providers, listing.page)))
}

/// Reads: held until the provider has answered, at most `Prefer: wait=N` seconds. With `/info`
/// behind the name: the provider itself.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/providers/{*provider_name}", tag = "jobs",
    params(
        ("room_id" = String, Path),
        ("provider_name" = String, Path, description = "room:category:name, or category/name; with /info behind it the provider's record"),
        ("Prefer" = Option<String>, Header, description = "wait=N"),
        ("If-None-Match" = Option<String>, Header)
    ),
    responses(
        (status = 200, description = "The answer, with the content type that the provider registered"),
        (status = 304, description = "It is what If-None-Match names"),
        (status = 401, description = "Who are you?"),
        (status = 404, description = "No such provider here"),
        (status = 422, description = "A parameter does not fit the provider's schema"),
        (status = 504, description = "It did not answer in time (404 with `jobs.timeout_status`)"),
    )
)]
pub(super) async fn read(
    State(door): State<Arc<Jobs>>,
    Parts2(room, name): Parts2,
    prefer: Prefer,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Error> {
    // Boxed, and gone when it is done: a read may be held for long after it.
    let begun = Box::pin(begin(&door, room, name, prefer, query, request)).await?;
    let (begun, wanted, time) = match begun {
        Asked::Read(begun, wanted, time) => (begun, wanted, time),
        Asked::Info(response) => return Ok(response),
    };
    let read = begun.end().await?;
    let timing = read.timing;
    let mut response = answer::response(read.found, wanted.as_ref()).await?;
    if let Some(timing) = timing {
        timing.write(response.headers_mut());
        applied(response.headers_mut(), prefer, time);
    }
    Ok(response)
}

enum Asked {
    /// With what the reader has already, and how long it is held.
    Read(Begun, Option<HeaderValue>, Duration),
    Info(Response),
}

async fn begin(
    door: &Arc<Jobs>,
    room: String,
    name: String,
    prefer: Prefer,
    query: Option<String>,
    request: Request,
) -> Result<Asked, Error> {
    let (mut parts, _) = request.into_parts();
    if let Some(name) = name.strip_suffix("/info") {
        let Visitor(visitor) = extract(&mut parts, door).await?;
        let provider = door.provider(visitor, &room, name).await?;
        let response = Json(ProviderResponse::from(provider)).into_response();
        return Ok(Asked::Info(response));
    }
    crate::name::check_room(&room)?;
    let Reader(caller) = extract(&mut parts, door).await?;
    let params = Params::from_query(query.as_deref().unwrap_or_default())?;
    let wanted = parts.headers.remove(header::IF_NONE_MATCH);
    let settings = door.settings();
    let time = prefer.wait.unwrap_or(settings.read_hold);
    let time = time.min(settings.max_read_hold);
    let begun = door.read(caller, &room, &name, params, time).await?;
    Ok(Asked::Read(begun, wanted, time))
}

async fn extract<E: axum::extract::FromRequestParts<Arc<Jobs>, Rejection = Error>>(
    parts: &mut http::request::Parts,
    door: &Arc<Jobs>,
) -> Result<E, Error> {
    E::from_request_parts(parts, door).await
}

/// A beat of its worker's heart.
#[utoipa::path(
    patch, path = "/v1/joblib/providers/{provider_id}", tag = "jobs",
    params(("provider_id" = Uuid, Path)),
    responses(
        (status = 200, body = ProviderResponse),
        (status = 403, description = "Another user's"),
        (status = 404, description = "No such provider: register again"),
    )
)]
pub(super) async fn heartbeat(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(provider): Parts1,
) -> Result<Json<ProviderResponse>, Error> {
    let provider = id("provider_id", &provider)?;
    Ok(Json(door.touch_provider(caller, provider).await?.into()))
}

/// Ends a provider; its answers are not served any more.
#[utoipa::path(
    delete, path = "/v1/joblib/providers/{provider_id}", tag = "jobs",
    params(("provider_id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 403, description = "Another user's, or the server's own"),
        (status = 404, description = "No such provider"),
    )
)]
pub(super) async fn remove(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    Parts1(provider): Parts1,
) -> Result<(StatusCode, HeaderMap), Error> {
    let provider = id("provider_id", &provider)?;
    door.remove_provider(caller, provider).await?;
    Ok(no_content())
}

/// A provider's answer, as raw bytes: all who wait for it get it at once.
#[utoipa::path(
    post, path = "/v1/joblib/providers/{provider_id}/results", tag = "jobs",
    params(
        ("provider_id" = Uuid, Path),
        ("X-Request-Hash" = String, Header, description = "Which question this answers"),
        ("X-Result-Status" = Option<String>, Header, description = "error: the body is a problem document"),
        ("Cache-Control" = Option<String>, Header, description = "max-age=N or no-store: how long this answer is kept")
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 204, description = "Kept, and whoever waits has been woken"),
        (status = 403, description = "Another user's"),
        (status = 404, description = "No such provider"),
        (status = 408, description = "It stopped coming"),
        (status = 413, description = "Longer than `jobs.max_result`, or than the place for it"),
        (status = 422, description = "X-Request-Hash"),
        (status = 503, description = "Too many come in at once (`jobs.upload_memory`)"),
    )
)]
pub(super) async fn upload(
    State(door): State<Arc<Jobs>>,
    Reader(caller): Reader,
    Parts1(provider): Parts1,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, HeaderMap), Error> {
    let provider = id("provider_id", &provider)?;
    let hash = request_hash(&headers)?;
    let is_error = match headers.get(RESULT_STATUS).map(HeaderValue::as_bytes) {
        None | Some(b"ok") => false,
        Some(b"error") => true,
        Some(other) => {
            let other = String::from_utf8_lossy(other).into_owned();
            let at = ["header", RESULT_STATUS];
            let message = "Input should be 'ok' or 'error'";
            return Err(Unfit::new("enum", &at, message, other).into());
        }
    };
    let ttl = match headers.get(header::CACHE_CONTROL).map(HeaderValue::to_str) {
        Some(Ok(text)) => kept_for(&["header", "cache-control"], text)?,
        _ => None,
    };
    door.upload(caller, provider, hash, body, is_error, ttl)
        .await?;
    Ok(no_content())
}

fn request_hash(headers: &HeaderMap) -> Result<String, Error> {
    let at = ["header", REQUEST_HASH];
    let Some(hash) = headers.get(REQUEST_HASH) else {
        let message = "Field required";
        return Err(Unfit::new("missing", &at, message, serde_json::Value::Null).into());
    };
    match hash.to_str() {
        Ok(hash) if (1..=MAX_HASH).contains(&hash.len()) => Ok(hash.to_owned()),
        _ => {
            let message = format!("Input should have 1 to {MAX_HASH} printable characters");
            let input = String::from_utf8_lossy(hash.as_bytes()).into_owned();
            Err(Unfit::new("value_error", &at, message, input).into())
        }
    }
}
