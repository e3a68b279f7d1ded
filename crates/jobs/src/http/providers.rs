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
    fields::{self, JsonObject, ListQuery, PathParam, PathParams, id, request_body},
    jobs::created,
    no_content,
    shapes::{PageResponse, ProviderResponse},
    tasks::applied,
};
use crate::{
    caller::{Caller, ListCaller, ProviderCaller},
    error::{Error, InvalidField},
    params::Params,
    service::{Jobs, Offer, ReadStart},
};

const REQUEST_HASH: &str = "x-request-hash";
const RESULT_STATUS: &str = "x-result-status";
/// Characters of a request's hash.
const MAX_HASH: usize = 128;
const MAX_CONTENT_TYPE: usize = 255;
const MAX_TTL: u64 = 30 * 86_400;

request_body! {
    pub(super) struct ProviderRegisterRequest {
        category: String,
        name: String,
        /// JSON Schema of the parameters of a read. `schema_` is accepted too.
        #[schema(value_type = Option<Object>)]
        schema: JsonObject,
        /// Without it, a worker is created.
        worker_id: Option<Uuid>,
        /// The content type of its answers; application/json by default.
        content_type: Option<String>,
        /// How long its answers are kept: `max-age=N`, or `no-store`. By default the server's setting.
        cache_control: Option<String>,
    }
}

/// Registers a provider for a worker.
#[utoipa::path(
    put, path = "/v1/joblib/rooms/{room_id}/providers", tag = "jobs",
    params(("room_id" = String, Path)),
    request_body = ProviderRegisterRequest,
    responses(
        (status = 201, description = "New", body = ProviderResponse),
        (status = 200, description = "Registered anew; its earlier answers are not served", body = ProviderResponse),
        (status = 400, description = "The category or the room's name is not valid"),
        (status = 403, description = "It belongs to another user, or @global without being superuser"),
        (status = 404, description = "No such worker"),
        (status = 422, description = "A field does not fit; the detail names it"),
    )
)]
pub(super) async fn register(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(room): PathParam,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<ProviderResponse>), Error> {
    let body: ProviderRegisterRequest = fields::body(&body)?;
    let offer = Offer {
        category: body.category,
        name: body.name,
        schema: body.schema.0,
        worker: body.worker_id,
    };
    let content_type = body.content_type;
    let content_type = content_type.unwrap_or_else(|| "application/json".to_owned());
    if content_type.len() > MAX_CONTENT_TYPE || HeaderValue::from_str(&content_type).is_err() {
        let message = "Input should be a media type";
        let at = ["body", "content_type"];
        return Err(InvalidField::new("value_error", &at, message, content_type).into());
    }
    let ttl = body
        .cache_control
        .map(|text| kept_for(&["body", "cache_control"], &text));
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
                Err(InvalidField::new("value_error", at, message, text).into())
            }
        };
    }
    Ok(None)
}

/// The providers that this room sees, newest first.
#[utoipa::path(
    get, path = "/v1/joblib/rooms/{room_id}/providers", tag = "jobs",
    params(("room_id" = String, Path), ("limit" = Option<i64>, Query), ("offset" = Option<i64>, Query)),
    responses((status = 200, body = PageResponse<ProviderResponse>), (status = 400, description = "The room's name is not valid"))
)]
pub(super) async fn list(
    State(door): State<Arc<Jobs>>,
    ListCaller(visitor): ListCaller,
    PathParam(room): PathParam,
    query: ListQuery,
) -> Result<Json<PageResponse<ProviderResponse>>, Error> {
    let providers = door.providers(visitor, &room, query.page).await?;
    Ok(Json(PageResponse::new(providers, query.page)))
}

pub(super) const READ_PATH: &str = "/v1/joblib/rooms/{room_id}/providers/{*provider_name}";

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
        (status = 304, description = "The answer has the ETag of If-None-Match"),
        (status = 401, description = "No valid token"),
        (status = 404, description = "No such provider here"),
        (status = 422, description = "A parameter does not fit the provider's schema"),
        (status = 504, description = "The provider did not answer in time (404 with `jobs.timeout_status`)"),
    )
)]
pub(super) async fn read(
    State(door): State<Arc<Jobs>>,
    PathParams(room, name): PathParams,
    prefer: Prefer,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Error> {
    // Boxed, and dropped when it is done: the read may be held for long after it.
    let begun = Box::pin(begin(&door, room, name, prefer, query, request)).await?;
    let (begun, wanted, time) = match begun {
        ProviderRoute::Read(begun, wanted, time) => (begun, wanted, time),
        ProviderRoute::Info(response) => return Ok(response),
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

enum ProviderRoute {
    /// With the ETag that the reader has, and how long the read is held.
    Read(ReadStart, Option<HeaderValue>, Duration),
    Info(Response),
}

async fn begin(
    door: &Arc<Jobs>,
    room: String,
    name: String,
    prefer: Prefer,
    query: Option<String>,
    request: Request,
) -> Result<ProviderRoute, Error> {
    let (mut parts, _) = request.into_parts();
    if let Some(name) = name.strip_suffix("/info") {
        let ListCaller(visitor) = extract(&mut parts, door).await?;
        let provider = door.provider(visitor, &room, name).await?;
        let response = Json(ProviderResponse::from(provider)).into_response();
        return Ok(ProviderRoute::Info(response));
    }
    crate::name::check_room(&room)?;
    let ProviderCaller(caller) = extract(&mut parts, door).await?;
    let params = Params::from_query(query.as_deref().unwrap_or_default())?;
    let wanted = parts.headers.remove(header::IF_NONE_MATCH);
    let settings = door.settings();
    let time = prefer.wait.unwrap_or(settings.read_hold);
    let time = time.min(settings.max_read_hold);
    let begun = door.read(caller, &room, &name, params, time).await?;
    Ok(ProviderRoute::Read(begun, wanted, time))
}

async fn extract<E: axum::extract::FromRequestParts<Arc<Jobs>, Rejection = Error>>(
    parts: &mut http::request::Parts,
    door: &Arc<Jobs>,
) -> Result<E, Error> {
    E::from_request_parts(parts, door).await
}

/// A heartbeat of the provider's worker.
#[utoipa::path(
    patch, path = "/v1/joblib/providers/{provider_id}", tag = "jobs",
    params(("provider_id" = Uuid, Path)),
    responses(
        (status = 200, body = ProviderResponse),
        (status = 403, description = "It belongs to another user"),
        (status = 404, description = "No such provider: register again"),
    )
)]
pub(super) async fn heartbeat(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(provider): PathParam,
) -> Result<Json<ProviderResponse>, Error> {
    let provider = id("provider_id", &provider)?;
    Ok(Json(door.touch_provider(caller, provider).await?.into()))
}

/// Removes a provider; its answers are not served any more.
#[utoipa::path(
    delete, path = "/v1/joblib/providers/{provider_id}", tag = "jobs",
    params(("provider_id" = Uuid, Path)),
    responses(
        (status = 204, description = "Removed"),
        (status = 403, description = "It belongs to another user, or to the server"),
        (status = 404, description = "No such provider"),
    )
)]
pub(super) async fn remove(
    State(door): State<Arc<Jobs>>,
    caller: Caller,
    PathParam(provider): PathParam,
) -> Result<(StatusCode, HeaderMap), Error> {
    let provider = id("provider_id", &provider)?;
    door.remove_provider(caller, provider).await?;
    Ok(no_content())
}

/// A provider's answer, as raw bytes: all waiting readers get it at once.
#[utoipa::path(
    post, path = "/v1/joblib/providers/{provider_id}/results", tag = "jobs",
    params(
        ("provider_id" = Uuid, Path),
        ("X-Request-Hash" = String, Header, description = "The hash of the request that this answers"),
        ("X-Result-Status" = Option<String>, Header, description = "error: the body is a problem document"),
        ("Cache-Control" = Option<String>, Header, description = "max-age=N or no-store: how long this answer is kept")
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 204, description = "Stored, and the waiting readers are woken"),
        (status = 403, description = "It belongs to another user"),
        (status = 404, description = "No such provider"),
        (status = 408, description = "The body stopped arriving"),
        (status = 413, description = "Longer than `jobs.max_result`, or than the space for answers"),
        (status = 422, description = "X-Request-Hash is missing or not valid"),
        (status = 503, description = "Too many uploads at once (`jobs.upload_memory`)"),
    )
)]
pub(super) async fn upload(
    State(door): State<Arc<Jobs>>,
    ProviderCaller(caller): ProviderCaller,
    PathParam(provider): PathParam,
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
            return Err(InvalidField::new("enum", &at, message, other).into());
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
        return Err(InvalidField::new("missing", &at, message, serde_json::Value::Null).into());
    };
    match hash.to_str() {
        Ok(hash) if (1..=MAX_HASH).contains(&hash.len()) => Ok(hash.to_owned()),
        _ => {
            let message = format!("Input should have 1 to {MAX_HASH} printable characters");
            let input = String::from_utf8_lossy(hash.as_bytes()).into_owned();
            Err(InvalidField::new("value_error", &at, message, input).into())
        }
    }
}
