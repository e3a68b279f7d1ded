//! What was done in a time, and by which nodes.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde_json::{Map, Value, json};
use wakeline_web::{Params, Problem};

use super::{
    nodes,
    range::{Range, RangeQuery, average_ms},
};
use crate::{
    counters::CounterRow,
    http::{Answer, Door, refusals::BadParameter, short_time_text},
    service::Queue,
};

/// Counters and node statistics by time step, also of steps that have only one of the two.
pub(in crate::http) async fn joined(
    door: &Queue,
    range: &Range,
) -> Result<Vec<(CounterRow, Map<String, Value>)>, Problem> {
    let mut health = nodes::by_step(&nodes::steps(door, range).await?);
    let mut counts: BTreeMap<i64, CounterRow> = BTreeMap::new();
    for count in range.series(door, false).await? {
        counts.insert(count.minute_us, count);
    }
    let at = |minute_us: i64| CounterRow {
        minute_us,
        ..CounterRow::default()
    };
    for minute_us in health.keys() {
        counts.entry(*minute_us).or_insert_with(|| at(*minute_us));
    }
    if range.queue.is_some() {
        // A failure of the database belongs to the server, not to a queue.
        for whole in door.counts(range.span(), &None, false).await? {
            if whole.store_failures > 0 {
                let count = counts
                    .entry(whole.minute_us)
                    .or_insert_with(|| at(whole.minute_us));
                count.store_failures = whole.store_failures;
            }
        }
    }
    let with_nodes = |(minute_us, count)| (count, health.remove(&minute_us).unwrap_or_default());
    Ok(counts.into_iter().map(with_nodes).collect())
}

fn point(range: &Range, count: &CounterRow, nodes: &Map<String, Value>) -> Value {
    let mut point = json!({
        "timestamp": short_time_text(count.minute_us),
        "pushMessages": count.pushed,
        "popMessages": count.popped,
        "ackMessages": count.completed + count.failed,
        "pushRequests": count.push_requests,
        "popRequests": count.pop_requests,
        "ackRequests": count.ack_requests,
        "jobsDone": count.push_requests + count.pop_requests + count.ack_requests
            + count.transactions,
        "pushPerSecond": range.per_second(count.pushed),
        "popPerSecond": range.per_second(count.popped),
        "ackPerSecond": range.per_second(count.completed + count.failed),
        "ackSuccess": count.completed,
        "ackFailed": count.failed,
        "dlqCount": count.dead,
        "dbErrors": count.store_failures,
        "avgLagMs": average_ms(count),
        "maxLagMs": count.max_lag_us / 1_000,
        "lagCount": count.popped,
        // There is no queue of jobs, and no backoff.
        "avgJobQueueSize": null, "maxJobQueueSize": null, "backoffSize": null,
    });
    for name in [
        "avgEventLoopLagMs",
        "maxEventLoopLagMs",
        "avgFreeSlots",
        "minFreeSlots",
        "dbConnections",
    ] {
        point[name] = nodes.get(name).cloned().unwrap_or_default();
    }
    point
}

/// What was done in a time (the last hour by default), by time step and by queue, and the nodes.
#[utoipa::path(
    get, path = "/api/v1/analytics/worker-metrics", tag = "queue",
    params(RangeQuery),
    responses(
        (status = 200, description = "Counts of messages, calls and failures; the summary is of the time asked for", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn worker_metrics(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let series = joined(&door, &range).await?;
    let mut by_queue: BTreeMap<String, CounterRow> = BTreeMap::new();
    for count in range.series(&door, true).await? {
        by_queue.entry(count.queue.clone()).or_default().add(&count);
    }
    let pending = door.overview().await?.counts.pending;
    let sum = |of: fn(&CounterRow) -> i64| series.iter().map(|(count, _)| of(count)).sum::<i64>();
    Ok(Json(range.answer(json!({
        "pointCount": series.len(),
        "timeSeries": series
            .iter()
            .map(|(count, nodes)| point(&range, count, nodes))
            .collect::<Vec<_>>(),
        "queues": by_queue.iter().map(|(queue, count)| json!({
            "queueName": queue,
            "popCount": count.popped,
            "avgLagMs": average_ms(count).unwrap_or_default(),
            "maxLagMs": count.max_lag_us / 1_000,
        })).collect::<Vec<_>>(),
        "summary": {
            "totalPushMessages": sum(|count| count.pushed),
            "totalPopMessages": sum(|count| count.popped),
            "totalAckMessages": sum(|count| count.completed + count.failed),
            "totalAckFailed": sum(|count| count.failed),
            "totalDlq": sum(|count| count.dead),
            "totalPushRequests": sum(|count| count.push_requests),
            "totalPopRequests": sum(|count| count.pop_requests),
            "totalAckRequests": sum(|count| count.ack_requests),
            "totalDbErrors": sum(|count| count.store_failures),
            "pendingMessages": pending,
        },
        "workers": nodes::workers(&door).await?,
    }))))
}
