//! The routes, in Queen's shapes.

mod ack;
mod configure;
mod groups;
mod lease;
mod maintenance;
mod pop;
mod push;
mod streams;
mod transaction;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{Need, Problem, need};

use crate::service::Queue;

/// All routes of this door.
pub fn router(door: Arc<Queue>) -> OpenApiRouter {
    let producing = OpenApiRouter::new().routes(routes!(push::push));
    let consuming = OpenApiRouter::new()
        .routes(routes!(pop::pop_queue))
        .routes(routes!(pop::pop_partition))
        .routes(routes!(pop::pop_matching))
        .routes(routes!(ack::ack))
        .routes(routes!(ack::ack_batch))
        .routes(routes!(transaction::transaction))
        .routes(routes!(lease::extend))
        .routes(routes!(configure::configure))
        .routes(routes!(groups::subscribe))
        .routes(routes!(streams::register))
        .routes(routes!(streams::cycle))
        .routes(routes!(streams::states));
    let reading = OpenApiRouter::new()
        .routes(routes!(maintenance::modes))
        .routes(routes!(maintenance::pop_mode));
    let ruling = OpenApiRouter::new()
        .routes(routes!(configure::delete_queue))
        .routes(routes!(groups::delete))
        .routes(routes!(groups::delete_in_queue))
        .routes(routes!(groups::seek))
        .routes(routes!(groups::seek_partition))
        .routes(routes!(maintenance::pause_pushes))
        .routes(routes!(maintenance::pause_pops));
    need(producing, Need::Write)
        .merge(need(consuming, Need::Consume))
        .merge(need(reading, Need::Read))
        .merge(need(ruling, Need::Admin))
        .with_state(door)
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// A time as text.
fn created(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        .unwrap_or_default()
}

/// A text as a time.
fn time(field: &str, text: &str) -> Result<i64, Problem> {
    let timestamp: jiff::Timestamp = text
        .parse()
        .map_err(|_| Problem::invalid(field, "not a time; write it as 2026-01-31T12:00:00Z"))?;
    Ok(timestamp.as_microsecond())
}
