//! The routes, in zndraw-joblib's shapes.

mod answer;
pub mod chat;
mod fields;
pub mod frames;
mod jobs;
mod problems;
pub mod progress;
mod providers;
pub mod rooms;
mod shapes;
mod signed;
mod small_body;
mod tasks;
pub mod users;
mod workers;

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{
    require_by_method,
    unknown::{ANY, IgnoredName, ignore_names},
};

use crate::{
    caller::{Caller, HasUsers},
    error::Error,
    frames::Frames,
    service::Jobs,
    users::{Users, refreshing},
};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

impl HasUsers for Arc<Jobs> {
    fn users(&self) -> &Users {
        Jobs::users(self)
    }
}

/// The prefixes of these routes. They have a login of their own.
pub const PATHS: [&str; 5] = [
    "/v1/joblib",
    "/v1/auth",
    "/v1/rooms",
    "/v1/problems",
    "/socket.io",
];

/// What clients send that has no meaning here.
const IGNORED: &[IgnoredName] = &[IgnoredName {
    of: providers::READ_PATH,
    name: ANY,
    reason: "the query is what the caller asks the provider",
}];

/// The paths that need no login.
pub const OPEN_PATHS: [&str; 6] = [
    "/v1/auth/guest",
    "/v1/auth/register",
    "/v1/auth/jwt/login",
    "/v1/auth/jwt/logout",
    "/v1/problems",
    "/v1/problems/{problem}",
];

/// All routes of this door. Those of users refresh tokens by themselves.
pub fn router(door: Arc<Jobs>, frames: Arc<Frames>) -> OpenApiRouter {
    ignore_names(IGNORED);
    let users = Jobs::users(&door).clone();
    let rooms = rooms::router(frames.clone())
        .merge(frames::router(frames.clone()))
        .merge(chat::router(frames.clone()))
        .merge(progress::router(frames));
    let rooms = rooms.route_layer(from_fn_with_state(users.clone(), sign));
    let routes = OpenApiRouter::new()
        .routes(routes!(workers::create, workers::list))
        .routes(routes!(workers::heartbeat, workers::remove))
        .routes(routes!(workers::of_room))
        .routes(routes!(jobs::register, jobs::list))
        .routes(routes!(jobs::one))
        .routes(routes!(tasks::of_room))
        .routes(routes!(tasks::submit))
        .routes(routes!(tasks::claim))
        .routes(routes!(tasks::one, tasks::update))
        .routes(routes!(providers::register, providers::list))
        .routes(routes!(providers::read))
        .routes(routes!(providers::heartbeat, providers::remove))
        .routes(routes!(providers::upload))
        .routes(routes!(problems::list))
        .routes(routes!(problems::one))
        .with_state(door)
        .merge(rooms);
    let routes = refreshing(routes, users.clone());
    require_by_method(routes).merge(users::router(users))
}

/// Identifies the caller for the routes that need one.
async fn sign(
    State(users): State<Arc<Users>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Error> {
    let (mut parts, body) = request.into_parts();
    let caller = Caller::from_request_parts(&mut parts, &users).await?;
    parts.extensions.insert(caller);
    request = Request::from_parts(parts, body);
    Ok(next.run(request).await)
}

/// As zndraw-joblib answers without a body.
fn no_content() -> (StatusCode, HeaderMap) {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    (StatusCode::NO_CONTENT, headers)
}
