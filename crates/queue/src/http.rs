//! The routes, in Queen's shapes.

mod ack;
mod analytics;
mod configure;
mod consumer_groups;
mod dead_letters;
mod groups;
mod lease;
mod listing;
mod maintenance;
mod message_admin;
mod messages;
mod overview;
mod pop;
mod push;
mod query;
mod refusals;
mod resources;
mod status;
mod streams;
mod system;
mod traces;
mod transaction;
mod unsupported;

use std::sync::Arc;

use axum::{Json, extract::State};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{
    Problem, Right, require,
    unknown::{IgnoredName, ignore_names},
};

use crate::service::Queue;

type Door = State<Arc<Queue>>;
/// What most handlers return.
type Answer<T> = Result<Json<T>, Problem>;

/// What Queen's clients send that has no meaning here.
const IGNORED: &[IgnoredName] = &{
    const OF_QUEUE: &str = "/api/v1/pop/queue/{queue}";
    const OF_PARTITION: &str = "/api/v1/pop/queue/{queue}/partition/{partition}";
    const ONE_QUEUE: &str = "a client adds it to the name of a queue, which decides alone";
    const FRAMES: &str = "a client of 2.6 offers to read frames, and reads JSON as well";
    [
        ignored(OF_QUEUE, "namespace", ONE_QUEUE),
        ignored(OF_QUEUE, "task", ONE_QUEUE),
        ignored(OF_QUEUE, "frames", FRAMES),
        ignored(OF_PARTITION, "namespace", ONE_QUEUE),
        ignored(OF_PARTITION, "task", ONE_QUEUE),
        ignored(OF_PARTITION, "frames", FRAMES),
        ignored(POP_PREFIX, "frames", FRAMES),
    ]
};

const fn ignored(of: &'static str, name: &'static str, reason: &'static str) -> IgnoredName {
    IgnoredName { of, name, reason }
}

/// The beginning of the paths whose GETs take messages.
pub const POP_PREFIX: &str = "/api/v1/pop";

/// All routes of this door.
pub fn router(door: Arc<Queue>) -> OpenApiRouter {
    ignore_names(IGNORED);
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
        .routes(routes!(traces::add))
        .routes(routes!(streams::register))
        .routes(routes!(streams::cycle))
        .routes(routes!(streams::states));
    let reading = OpenApiRouter::new()
        .routes(routes!(maintenance::modes))
        .routes(routes!(maintenance::pop_mode))
        .merge(browsing());
    let ruling = OpenApiRouter::new()
        .routes(routes!(configure::delete_queue))
        .routes(routes!(groups::delete))
        .routes(routes!(groups::delete_in_queue))
        .routes(routes!(groups::seek))
        .routes(routes!(groups::seek_partition))
        .routes(routes!(message_admin::delete))
        .routes(routes!(message_admin::retry))
        .routes(routes!(message_admin::move_to_dead_letters))
        .routes(routes!(consumer_groups::refresh))
        .routes(routes!(system::notify))
        .routes(routes!(maintenance::pause_pushes))
        .routes(routes!(maintenance::pause_pops));
    require(producing, Right::Write)
        .merge(require(consuming, Right::Consume))
        .merge(require(reading, Right::Read))
        .merge(require(ruling, Right::Admin))
        .merge(unsupported::router())
        .with_state(door)
}

/// What people read.
fn browsing() -> OpenApiRouter<Arc<Queue>> {
    OpenApiRouter::new()
        .routes(routes!(overview::overview))
        .routes(routes!(resources::list))
        .routes(routes!(resources::one))
        .routes(routes!(resources::depth))
        .routes(routes!(overview::namespaces))
        .routes(routes!(overview::tasks))
        .routes(routes!(resources::partitions))
        .routes(routes!(messages::list))
        .routes(routes!(messages::one))
        .routes(routes!(dead_letters::list))
        .routes(routes!(traces::of_message))
        .routes(routes!(traces::of_name))
        .routes(routes!(traces::all_names))
        .routes(routes!(consumer_groups::list))
        .routes(routes!(consumer_groups::lagging))
        .routes(routes!(consumer_groups::one))
        .routes(routes!(status::status))
        .routes(routes!(status::queues::queue_list))
        .routes(routes!(status::queues::queue))
        .routes(routes!(status::queues::queue_messages))
        .routes(routes!(status::arrivals::analytics))
        .routes(routes!(status::buffers))
        .routes(routes!(analytics::system_metrics::system_metrics))
        .routes(routes!(analytics::worker_metrics::worker_metrics))
        .routes(routes!(analytics::queue_lag::queue_lag))
        .routes(routes!(analytics::queue_ops::queue_ops))
        .routes(routes!(analytics::parked_replicas::parked_replicas))
        .routes(routes!(analytics::retention::retention))
        .routes(routes!(analytics::postgres_stats::postgres_stats))
        .routes(routes!(system::shared_state))
        .routes(routes!(system::shared_state_stats))
        .routes(routes!(system::inter_instance_stats))
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// A time as text.
fn time_text(micros: i64) -> String {
    formatted(micros, "%Y-%m-%dT%H:%M:%S%.6fZ")
}

/// Milliseconds, as Queen shows them in lists.
fn short_time_text(micros: i64) -> String {
    formatted(micros, "%Y-%m-%dT%H:%M:%S%.3fZ")
}

/// Whole seconds, as Queen shows the steps of a series.
fn second_text(micros: i64) -> String {
    formatted(micros, "%Y-%m-%dT%H:%M:%SZ")
}

fn formatted(micros: i64, format: &str) -> String {
    let time = jiff::Timestamp::from_microsecond(micros);
    time.map(|time| time.strftime(format).to_string())
        .unwrap_or_default()
}

/// A text as a time.
fn time(field: &str, text: &str) -> Result<i64, Problem> {
    let timestamp: jiff::Timestamp = text
        .parse()
        .map_err(|_| Problem::invalid(field, "not a time; write it as 2026-01-31T12:00:00Z"))?;
    Ok(timestamp.as_microsecond())
}
