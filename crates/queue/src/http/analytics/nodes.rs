//! How the nodes were doing, in Queen's words.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wakeline_web::Problem;

use super::range::{Range, bucket, rounded};
use crate::{
    browse::{Gauge, NodeStep, Span},
    service::Queue,
    tally::now_us,
};

/// Nodes that have told of themselves in this time are there.
const PRESENT_MINUTES: i64 = 5;
const MEGABYTE: f64 = 1_048_576.0;

/// Queen tells the workers of a host apart by a number; here a process is one, and its port is its
/// own.
pub(super) fn worker_name(port: i64) -> String {
    format!("worker-{port}")
}

pub(in crate::http) async fn steps(door: &Queue, range: &Range) -> Result<Vec<NodeStep>, Problem> {
    Ok(door.browse().node_steps(range.span(), &None).await?)
}

fn mean(of: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = of.collect();
    let count = u32::try_from(all.len()).ok().filter(|count| *count > 0)?;
    Some(rounded(all.iter().sum::<f64>() / f64::from(count)))
}

/// What all nodes together say of each step. A share or a size is the mean of the nodes.
pub(in crate::http) fn by_step(steps: &[NodeStep]) -> BTreeMap<i64, Map<String, Value>> {
    let mut nodes: BTreeMap<i64, Vec<&NodeStep>> = BTreeMap::new();
    for step in steps {
        nodes.entry(step.step_us).or_default().push(step);
    }
    nodes
        .into_iter()
        .map(|(at, nodes)| (at, health(&nodes)))
        .collect()
}

fn health(nodes: &[&NodeStep]) -> Map<String, Value> {
    let average = |of: fn(&NodeStep) -> Option<Gauge>, unit: f64| {
        mean(
            nodes
                .iter()
                .filter_map(|node| of(node))
                .map(|gauge| gauge.average / unit),
        )
    };
    let most = |of: fn(&NodeStep) -> Option<Gauge>| {
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

/// The connections of a node that were not at work.
pub(super) fn idle(node: &NodeStep) -> Option<Gauge> {
    let (all, busy) = (node.connections?, node.busy_connections?);
    Some(Gauge {
        average: all.average - busy.average,
        least: (all.least - busy.most).max(0),
        most: all.most - busy.least,
        last: all.last - busy.last,
    })
}

/// The nodes that are there now.
pub(in crate::http) async fn workers(door: &Queue) -> Result<Vec<Value>, Problem> {
    let now = now_us();
    let span = Span {
        from_us: now - PRESENT_MINUTES * Range::MINUTE,
        to_us: now + Range::MINUTE,
        bucket_us: i64::MAX,
    };
    let nodes = door.browse().node_steps(span, &None).await?;
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
                // What has arrived is in the next batch; there is no queue of jobs, and no backoff.
                "jobQueueSize": null,
                "backoffSize": null,
                "messagesProcessed": node.messages,
                "lastSeen": bucket(node.last_us),
            })
        })
        .collect())
}
