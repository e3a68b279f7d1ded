//! Cross-origin requests: browsers ask first, by `OPTIONS`, what they may send.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};

const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

/// Whose pages may call.
#[derive(Clone, Debug)]
pub enum Origins {
    Any,
    These(Arc<[String]>),
}

/// The routes that answer `OPTIONS`.
pub(super) const PATHS: [&str; 7] = [
    "/login",
    "/save",
    "/load",
    "/read",
    "/write",
    "/feeds",
    "/feeds/{hash}",
];

/// Adds the origin to every answer, errors too.
pub(super) async fn allow(
    State(origins): State<Origins>,
    request: Request,
    next: Next,
) -> Response {
    let allowed = match &origins {
        Origins::Any => Some(HeaderValue::from_static("*")),
        Origins::These(these) => request
            .headers()
            .get(header::ORIGIN)
            .filter(|origin| {
                these
                    .iter()
                    .any(|known| known.as_bytes() == origin.as_bytes())
            })
            .cloned(),
    };
    let mut response = next.run(request).await;
    if let Some(allowed) = allowed {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if matches!(origins, Origins::These(_)) {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
    }
    response
}

/// What a route takes. Clients decide by it how they save.
pub(super) async fn options(uri: Uri) -> Response {
    let route = uri.path().strip_prefix(super::PREFIX).unwrap_or_default();
    let (methods, sent, posted) = match route {
        "/save" => (
            "POST, OPTIONS",
            "Content-Type, Authorization",
            "application/json, application/x-jinaga-graph-v1",
        ),
        "/write" => ("POST, OPTIONS", "Content-Type, Authorization", "text/plain"),
        "/load" => (
            "POST, OPTIONS",
            "Content-Type, Accept, Authorization",
            "application/json",
        ),
        "/read" | "/feeds" => (
            "POST, OPTIONS",
            "Content-Type, Accept, Authorization",
            "text/plain",
        ),
        _ => ("GET, OPTIONS", "Accept, Authorization", ""),
    };
    let mut headers = HeaderMap::new();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::ALLOW, methods);
    set(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    set(header::ACCESS_CONTROL_ALLOW_HEADERS, sent);
    if posted.is_empty() {
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "");
    } else {
        set(header::ACCESS_CONTROL_EXPOSE_HEADERS, "Accept-Post");
        set(ACCEPT_POST, posted);
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}
