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

use crate::{ServerState, process, requests};

/// From a tenth of a millisecond to ten minutes.
const SECONDS: [f64; 17] = [
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 30.0,
    120.0, 600.0,
];
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// The recorder keeps every value of a histogram until it is read or this runs.
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

/// Of a server that counts nothing: a process may have several of them.
pub(crate) fn detached() -> Metering {
    PrometheusBuilder::new().build_recorder().handle()
}

fn describe() {
    use metrics::{describe_counter, describe_gauge};
    wakeline_store::metrics::describe();
    wakeline_bus::describe_metrics();
    wakeline_web::describe_metrics();
    wakeline_queue::metrics::describe();
    wakeline_jobs::metrics::describe();
    wakeline_feed::metrics::describe();
    requests::describe_metrics();
    describe_gauge!(
        "wakeline_waiters",
        "Waiters now, by door: held requests, streams, and tasks of the door itself"
    );
    describe_gauge!("wakeline_topics", "Topics that have waiters");
    describe_gauge!("wakeline_timers", "Wakes that are due later");
    describe_counter!("wakeline_holds_total", "Requests that were held, by door");
    describe_counter!(
        "wakeline_holds_refused_total",
        "Holds refused by a limit or during the drain, by door"
    );
    describe_counter!(
        "wakeline_wakes_total",
        "Wakes by door, cause and whether the waiter found something"
    );
    describe_gauge!(
        "wakeline_bus_live",
        "1 while the bus carries wakes or there is only one node, else 0"
    );
    describe_gauge!(
        "wakeline_bus_round_trip_seconds",
        "Round trip of the last canary"
    );
}

pub(crate) fn router(shared: ServerState, metering: Metering) -> OpenApiRouter {
    let routes = OpenApiRouter::new()
        .routes(routes!(metrics_text))
        .routes(routes!(prometheus_text));
    require(routes, Right::Read).with_state((shared, metering))
}

/// All metrics, in Prometheus' text form.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    responses((status = 200, description = "Prometheus' text form", content_type = "text/plain", body = String))
)]
async fn metrics_text(
    State((shared, metering)): State<(ServerState, Metering)>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    read_engine(&shared);
    read_bus(&shared);
    let mut text = metering.render();
    text.push_str(&process());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// The same as `/metrics`, at Queen's path.
#[utoipa::path(
    get, path = "/metrics/prometheus", tag = "server",
    responses((status = 200, description = "Prometheus' text form", content_type = "text/plain", body = String))
)]
async fn prometheus_text(
    state: State<(ServerState, Metering)>,
) -> ([(header::HeaderName, &'static str); 1], String) {
    metrics_text(state).await
}

/// The engine counts by itself; its numbers are copied when `/metrics` is read.
#[allow(clippy::cast_precision_loss, reason = "a gauge is a float")]
fn read_engine(shared: &ServerState) {
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

fn read_bus(shared: &ServerState) {
    let status = shared.bus.status();
    let is_live = f64::from(u8::from(status.mode != BusMode::Polling));
    metrics::gauge!("wakeline_bus_live", "bus" => status.kind).set(is_live);
    if let Some(trip) = status.round_trip {
        metrics::gauge!("wakeline_bus_round_trip_seconds").set(trip.as_secs_f64());
    }
}

/// The process, named as Prometheus' own clients do. Processor time is a fraction, which a counter
/// of the recorder cannot be.
fn process() -> String {
    let Some(usage) = process::usage() else {
        return String::new();
    };
    let resident = usage.resident_bytes;
    let cpu = (usage.user + usage.system).as_secs_f64();
    format!(
        "# HELP process_resident_memory_bytes Resident memory size\n\
         # TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes {resident}\n\
         # HELP process_cpu_seconds_total User and system CPU time\n\
         # TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total {cpu:.2}\n"
    )
}
