//! `/metrics`, in Prometheus' form.

use std::time::Duration;

use anyhow::{Context, Result};
use axum::extract::State;
use http::header;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_bus::BusMode;
use wakeline_wake::Cause;
use wakeline_web::{Right, require};

use crate::{Shared, process};

/// From a tenth of a millisecond to ten minutes.
const SECONDS: [f64; 17] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0,
    120.0, 600.0,
];
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// Histograms gather until they are read; without a reader, this empties them.
const UPKEEP: Duration = Duration::from_secs(15);

pub(crate) type Metering = PrometheusHandle;

pub(crate) fn install() -> Result<Metering> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_size".into()), &SIZES)?
        .install_recorder()
        .context("metrics")?;
    describe();
    let upkeep = handle.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(UPKEEP).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

fn describe_feeds() {
    use metrics::describe_histogram as histogram;
    use metrics::{describe_counter as counter, describe_gauge as gauge};
    gauge!("wakeline_feed_streams", "Streams of feeds that are open");
    counter!(
        "wakeline_feed_frames_total",
        "Frames sent to streams: pages, SYNC and denials"
    );
    counter!("wakeline_feed_pages_total", "Pages sent to streams");
    counter!(
        "wakeline_feed_references_total",
        "Facts that streams were told of"
    );
    counter!(
        "wakeline_feed_cycles_total",
        "Times that a stream looked for what is new"
    );
    counter!("wakeline_feed_syncs_total", "Times that a stream said SYNC");
    counter!(
        "wakeline_feed_restarts_total",
        "Cycles that followed another because something had come meanwhile"
    );
    counter!(
        "wakeline_feed_dropped_total",
        "Streams that were closed at a limit, by why"
    );
    histogram!(
        "wakeline_feed_waitlist_peak",
        "The most facts that waited for a stream, when it ends"
    );
    histogram!(
        "wakeline_feed_time_to_sync_seconds",
        "From the opening of a stream to its first SYNC"
    );
}

fn describe() {
    use metrics::describe_histogram as histogram;
    use metrics::{describe_counter as counter, describe_gauge as gauge};
    gauge!("wakeline_waiters", "Requests held now, by door");
    gauge!("wakeline_topics", "Topics that somebody waits for");
    gauge!("wakeline_timers", "Wakes that are due later");
    counter!("wakeline_holds_total", "Requests that were held, by door");
    counter!(
        "wakeline_holds_refused_total",
        "Holds refused by a limit or the drain, by door"
    );
    counter!(
        "wakeline_wakes_total",
        "Wakes by door, cause and whether they found something"
    );
    histogram!("wakeline_hold_seconds", "How long requests were held");
    histogram!(
        "wakeline_wake_to_answer_seconds",
        "From the wake to the answer"
    );
    counter!("wakeline_statements_total", "Statements by kind");
    histogram!("wakeline_batch_size", "Operations that shared a commit");
    histogram!(
        "wakeline_commit_seconds",
        "How long a batch took, its commit included"
    );
    counter!(
        "wakeline_http_requests_total",
        "Answers by method and status"
    );
    describe_feeds();
    counter!(
        "wakeline_bus_sent_total",
        "Messages sent to the other nodes"
    );
    counter!(
        "wakeline_bus_received_total",
        "Messages from the other nodes"
    );
    gauge!(
        "wakeline_bus_live",
        "1 while the bus answers, or there is only one node"
    );
    gauge!(
        "wakeline_bus_round_trip_seconds",
        "The way there and back of the last canary"
    );
}

pub(crate) fn router(shared: Shared, metering: Metering) -> OpenApiRouter {
    let routes = OpenApiRouter::new()
        .routes(routes!(metrics_text))
        .routes(routes!(prometheus_text));
    require(routes, Right::Read).with_state((shared, metering))
}

/// Everything that is counted, in Prometheus' text form.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Prometheus' text form", content_type = "text/plain", body = String))
)]
async fn metrics_text(
    State((shared, metering)): State<(Shared, Metering)>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    read_engine(&shared);
    read_bus(&shared);
    let mut text = metering.render();
    text.push_str(&process());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// The same as `/metrics`, where Queen has it.
#[utoipa::path(
    get, path = "/metrics/prometheus", tag = "server",
    responses((status = 200, description = "Prometheus' text form", content_type = "text/plain", body = String))
)]
async fn prometheus_text(
    state: State<(Shared, Metering)>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    metrics_text(state).await
}

/// The engine counts for itself; its numbers are copied when somebody asks.
#[allow(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn read_engine(shared: &Shared) {
    metrics::gauge!("wakeline_topics").set(shared.engine.topic_count() as f64);
    metrics::gauge!("wakeline_timers").set(shared.engine.timer_count() as f64);
    for (door, counters) in shared.engine.doors() {
        metrics::gauge!("wakeline_waiters", "door" => door.clone()).set(counters.waiters as f64);
        metrics::counter!("wakeline_holds_total", "door" => door.clone())
            .absolute(counters.registered);
        metrics::counter!("wakeline_holds_refused_total", "door" => door.clone())
            .absolute(counters.refused);
        for cause in Cause::ALL {
            let by_outcome = [
                ("yes", counters.found[cause as usize]),
                ("no", counters.nothing[cause as usize]),
            ];
            for (found, count) in by_outcome {
                metrics::counter!(
                    "wakeline_wakes_total",
                    "door" => door.clone(), "cause" => cause.name(), "found" => found
                )
                .absolute(count);
            }
        }
    }
}

fn read_bus(shared: &Shared) {
    let status = shared.bus.status();
    let is_live = f64::from(u8::from(status.mode != BusMode::Polling));
    metrics::gauge!("wakeline_bus_live", "bus" => status.kind).set(is_live);
    if let Some(trip) = status.round_trip {
        metrics::gauge!("wakeline_bus_round_trip_seconds").set(trip.as_secs_f64());
    }
}

/// The process itself, as Prometheus' own clients name it. The processor time is a fraction, which
/// a counter of the recorder cannot be.
fn process() -> String {
    let Some(used) = process::used() else {
        return String::new();
    };
    let resident = used.resident_bytes;
    let cpu = (used.user + used.system).as_secs_f64();
    format!(
        "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {resident}\n\
         # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {cpu:.2}\n"
    )
}
