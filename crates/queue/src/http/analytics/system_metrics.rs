//! What each node uses.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use super::{
    nodes::{idle, steps, worker_name},
    range::Range,
};
use crate::{
    browse::{Gauge, NodeStatsBucket},
    http::{
        Answer, Door,
        query::{TimesQuery, query, text},
        refusals::BadParameter,
        short_time_text,
    },
};

fn gauge(gauge: Option<Gauge>) -> Value {
    gauge.map_or(Value::Null, |gauge| {
        json!({
            "avg": gauge.average, "min": gauge.least, "max": gauge.most, "last": gauge.last,
        })
    })
}

fn point(step: &NodeStatsBucket) -> Value {
    json!({
        "timestamp": short_time_text(step.bucket_us),
        "sampleCount": step.minutes,
        "metrics": {
            // Hundredths of a percent, whatever Queen's names say.
            "cpu": {"user_us": gauge(step.cpu_user), "system_us": gauge(step.cpu_system)},
            "memory": {
                "rss_bytes": gauge(step.resident_bytes),
                "virtual_bytes": gauge(step.virtual_bytes),
            },
            "database": {
                "pool_size": gauge(step.connections),
                "pool_idle": gauge(idle(step)),
                "pool_active": gauge(step.busy_connections),
            },
            "registries": {"response": gauge(step.held)},
            // There is no pool of threads that jobs wait for, and nodes share no state.
            "threadpool": null,
            "shared_state": null,
        },
    })
}

query! {
    struct NodeQuery(limits) {
        hostname "hostname": String = text,
        worker "workerId": String = text,
    }
}

/// What each node uses (an hour by default): processor, memory, connections, held requests.
#[utoipa::path(
    get, path = "/api/v1/analytics/system-metrics", tag = "queue",
    params(TimesQuery, NodeQuery),
    responses(
        (status = 200, description = "By node and time step; kept for seven days", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn system_metrics(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let NodeQuery { hostname, worker } = NodeQuery::read(&params, door.limits())?;
    let fits = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|it| it == name);
    let mut nodes: BTreeMap<(String, i64), Vec<Value>> = BTreeMap::new();
    for step in steps(&door, &range).await? {
        if fits(&hostname, &step.hostname) && fits(&worker, &worker_name(step.port)) {
            let series = nodes.entry((step.hostname.clone(), step.port)).or_default();
            series.push(point(&step));
        }
    }
    let replicas = nodes.iter().map(|((hostname, port), series)| {
        json!({
            "hostname": hostname, "port": port, "workerId": worker_name(*port),
            "timeSeries": series,
        })
    });
    Ok(Json(range.answer(json!({
        "replicas": replicas.collect::<Vec<_>>(),
        "replicaCount": nodes.len(),
        "pointCount": nodes.values().map(Vec::len).sum::<usize>(),
    }))))
}
