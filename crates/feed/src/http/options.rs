//! `OPTIONS`: what a route takes.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};

const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");

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

/// The media types that a route accepts. Clients choose by it how they save.
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
