//! The routes, in zndraw-joblib's shapes.

mod answer;
mod fields;
pub mod frames;
mod jobs;
mod problems;
mod providers;
pub mod rooms;
mod shapes;
mod tasks;
pub mod users;
mod workers;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    caller::HasUsers,
    service::Jobs,
    users::{Users, refreshing},
};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

impl HasUsers for Arc<Jobs> {
    fn users(&self) -> &Users {
        Jobs::users(self)
    }
}

/// All routes of jobs and providers.
pub fn router(door: Arc<Jobs>) -> OpenApiRouter {
    let users = Jobs::users(&door).clone();
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
        .with_state(door);
    refreshing(routes, users)
}

/// As zndraw-joblib answers where there is nothing to say.
fn no_content() -> (StatusCode, HeaderMap) {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    (StatusCode::NO_CONTENT, headers)
}
