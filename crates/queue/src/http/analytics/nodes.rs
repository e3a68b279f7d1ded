//! The statistics of the nodes, under Queen's names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wakeline_web::Problem;

use super::range::{Range, rounded};
use crate::{
    browse::{Gauge, NodeStatsBucket, Span},
    counters::now_us,
    http::second_text,
    service::Queue,
};

/// A node counts as present if it has written its statistics in this time.
const PRESENT_MINUTES: i64 = 5;
const MEGABYTE: f64 = 1_048_576.0;

/// Queen numbers the workers of a host; here a process is one worker, and its port is its number.
pub(super) fn worker_name(port: i64) -> String {
    format!("worker-{port}")
}

pub(in crate::http) async fn steps(
    door: &Queue,
    range: &Range,
) -> Result<Vec<NodeStatsBucket>, Problem> {
    Ok(door.node_steps(range.span(), &None).await?)
}

fn mean(of: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = of.collect();
    let count = u32::try_from(all.len()).ok().filter(|count| *count > 0)?;
    Some(rounded(all.iter().sum::<f64>() / f64::from(count)))
}

/// The statistics of all nodes together, by time step. A share or a size is the mean of the nodes.
pub(in crate::http) fn by_step(steps: &[NodeStatsBucket]) -> BTreeMap<i64, Map<String, Value>> {
    let mut nodes: BTreeMap<i64, Vec<&NodeStatsBucket>> = BTreeMap::new();
    for step in steps {
        nodes.entry(step.bucket_us).or_default().push(step);
    }
    nodes
        .into_iter()
        .map(|(at, nodes)| (at, health(&nodes)))
        .collect()
}

fn health(nodes: &[&NodeStatsBucket]) -> Map<String, Value> {
    let average = |of: fn(&NodeStatsBucket) -> Option<Gauge>, unit: f64| {
        mean(
            nodes
                .iter()
                .filter_map(|node| of(node))
                .map(|gauge| gauge.average / unit),
        )
    };
    let most = |of: fn(&NodeStatsBucket) -> Option<Gauge>| {
        nodes
            .iter()
            .filter_map(|node| of(node))
            .map(|gauge| gauge.most)
            .max()
    };
    let idle = || nodes.iter().filter_map(|node| idle(node));
    let shown = json!({
        "avgEventLoopLagMs": average(|node| node.late_us, 1_000.0),
        "maxEventLoopLagMs": most(|node| node.max_late_us).map(|us| us / 1_000),
        "avgFreeSlots": mean(idle().map(|gauge| gauge.average)),
        "minFreeSlots": idle().map(|gauge| gauge.least).min(),
        "dbConnections": most(|node| node.connections),
        "queenCpuUserPct": average(|node| node.cpu_user, 100.0),
        "queenCpuSysPct": average(|node| node.cpu_system, 100.0),
        "queenRssMb": average(|node| node.resident_bytes, MEGABYTE),
        "dbPoolActive": average(|node| node.busy_connections, 1.0),
        "dbPoolIdle": mean(idle().map(|gauge| gauge.average)),
        "dbPoolSize": average(|node| node.connections, 1.0),
    });
    match shown {
        Value::Object(members) => members,
        _ => unreachable!("an object was written"),
    }
}

/// The idle connections of a node.
pub(super) fn idle(node: &NodeStatsBucket) -> Option<Gauge> {
    let (all, busy) = (node.connections?, node.busy_connections?);
    Some(Gauge {
        average: all.average - busy.average,
        least: (all.least - busy.most).max(0),
        most: all.most - busy.least,
        last: all.last - busy.last,
    })
}

/// The nodes that are present.
pub(in crate::http) async fn workers(door: &Queue) -> Result<Vec<Value>, Problem> {
    let now = now_us();
    let span = Span {
        from_us: now - PRESENT_MINUTES * Range::MINUTE,
        to_us: now + Range::MINUTE,
        bucket_us: i64::MAX,
    };
    let nodes = door.node_steps(span, &None).await?;
    Ok(nodes
        .iter()
        .map(|node| {
            json!({
                "hostname": node.hostname,
                "workerId": node.port,
                "avgEventLoopLagMs": node.late_us.map(|late| rounded(late.average / 1_000.0)),
                "maxEventLoopLagMs": node.max_late_us.map(|late| late.most / 1_000),
                "freeSlots": idle(node).map(|gauge| gauge.least),
                "dbConnections": node.connections.map(|gauge| gauge.last),
                // There is no queue of jobs, and no backoff.
                "jobQueueSize": null,
                "backoffSize": null,
                "messagesProcessed": node.messages,
                "lastSeen": second_text(node.last_us),
            })
        })
        .collect())
}
