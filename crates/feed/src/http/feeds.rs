//! Feeds: declared, and followed.

use std::time::Duration;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use wakeline_web::{Params, Prefer, Timing};

use super::{Door, accept, answer, body, stream};
use crate::{
    bookmark::Bookmark,
    error::Error,
    frame::{self, StreamFormat},
    json::write_string,
    login::Caller,
    service::{DeclaredFeeds, PageResult},
};

const TEXT: &str = "text/plain";
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Cuts a specification into feeds.
///
/// A feed is known by its hash from then on, on every node and after a restart.
#[utoipa::path(
    post, path = "/jinaga/feeds", tag = "feed",
    request_body(content = String, content_type = "text/plain", description = "Declarations and a specification"),
    responses(
        (status = 200, description = "`feeds` (their hashes) and `decisions` (whether the caller may have them)", content_type = "application/json"),
        (status = 400, description = "The text cannot be read", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn declare(
    State(door): State<Door>,
    caller: Caller,
    request: Request,
) -> Result<Response, Error> {
    let text = text(&door, request).await?;
    let declared = door.feeds.declare(&caller, &text).await?;
    Ok(answer::json(declared_text(&declared)))
}

fn declared_text(declared: &DeclaredFeeds) -> String {
    let mut text = String::from("{\"feeds\":[");
    for (index, feed) in declared.feeds.iter().enumerate() {
        text.push_str(if index > 0 { ",\"" } else { "\"" });
        text.push_str(&feed.hash);
        text.push('"');
    }
    text.push_str("],\"decisions\":[");
    for (index, feed) in declared.feeds.iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str("{\"feed\":\"");
        text.push_str(&feed.hash);
        text.push_str("\",\"decision\":\"");
        text.push_str(declared.verdict.as_str());
        text.push('"');
        if let Some(code) = declared.code {
            text.push_str(",\"code\":\"");
            text.push_str(code.as_str());
            text.push('"');
        }
        text.push_str(",\"reason\":");
        write_string(&mut text, &declared.reason);
        text.push('}');
    }
    text.push_str("]}");
    text
}

/// Follows a feed.
///
/// As a page of JSON (`Prefer: wait=N` holds it until there is something), as a stream in Jinaga's
/// form (`Accept: application/x-jinaga-feed-stream`) or as server-sent events
/// (`text/event-stream`).
#[utoipa::path(
    get, path = "/jinaga/feeds/{hash}", tag = "feed",
    params(
        ("hash" = String, Path, description = "The feed"),
        ("b" = Option<String>, Query, description = "The bookmark that the last page ended with"),
        ("Prefer" = Option<String>, Header, description = "`wait=N`: hold an empty page for N seconds"),
        ("Last-Event-ID" = Option<String>, Header, description = "The bookmark, as browsers send it again"),
    ),
    responses(
        (status = 200, description = "`references` and `bookmark`", content((Object = "application/json"), (String = "application/x-jinaga-feed-stream"), (String = "text/event-stream"))),
        (status = 400, description = "The bookmark cannot be read", content_type = "text/plain", body = String),
        (status = 404, description = "`feed_not_found`", content_type = "text/plain", body = String),
        (status = 503, description = "Too many wait, or the server stops", content_type = "text/plain", body = String),
    ),
)]
pub(super) async fn follow(
    State(door): State<Door>,
    caller: Caller,
    prefer: Prefer,
    Path(hash): Path<String>,
    headers: HeaderMap,
    uri: http::Uri,
) -> Result<Response, Error> {
    let params = Params::parse(uri.query().unwrap_or_default())
        .map_err(|problem| Error::invalid(problem.detail()))?;
    let resumed = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let (name, asked) = match resumed {
        Some(id) => ("Last-Event-ID", id),
        None => ("b", params.text("b").unwrap_or_default()),
    };
    let asked = asked.to_owned();
    let named = |error: Error| match error {
        Error::Bookmark(error) => Error::Invalid(format!("{name}: {error}")),
        other => other,
    };
    let bookmark: Bookmark = asked
        .parse()
        .map_err(|error| named(Error::Bookmark(error)))?;
    for form in [StreamFormat::Jinaga, StreamFormat::Events] {
        if accept::names(&headers, form.content_type()) {
            let stream = door.feeds.stream(&caller, &hash, bookmark).await;
            return Ok(stream::respond(stream.map_err(named)?, form));
        }
    }
    let wait = prefer.wait.unwrap_or(Duration::ZERO);
    let held = door.feeds.page(&caller, &hash, bookmark, wait).await;
    let held = held.map_err(named)?;
    Ok(page(&held, &asked, prefer, door.feeds.settings().max_hold))
}

/// An empty page repeats the request's bookmark.
fn page(held: &PageResult, asked: &str, prefer: Prefer, max_hold: Duration) -> Response {
    let text = match &held.page {
        Some(page) => frame::body(&page.references, &page.reached.to_string()),
        None => frame::body(&[], asked),
    };
    let mut response = answer::json(text);
    let headers = response.headers_mut();
    if let Some(wait) = prefer.wait
        && let Some(applied) = prefer.applied(wait.min(max_hold))
    {
        headers.insert(PREFERENCE_APPLIED, applied);
        let timing = Timing {
            hold: held.hold,
            woken_by: held.woken_by,
            store: held.store,
        };
        timing.write(headers);
    }
    headers.insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache"),
    );
    response
}

/// A body of text.
pub(super) async fn text(door: &Door, request: Request) -> Result<String, Error> {
    let (parts, sent) = request.into_parts();
    let bytes = door.body(sent)?.all(&parts.extensions).await?;
    if !body::is_of_type(&parts.headers, TEXT) {
        return Err(Error::Invalid(format!(
            "Expected a string. Check the content type of the request: text/plain is expected. {}",
            body::described(&parts.headers)
        )));
    }
    if bytes.is_empty() {
        return Err(Error::invalid(
            "The request body is empty; a text is expected.",
        ));
    }
    String::from_utf8(bytes.into()).map_err(|_| Error::invalid("body: it is not UTF-8"))
}
