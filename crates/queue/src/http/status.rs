//! `/api/v1/status`: messages, leases and what was done.

pub(super) mod arrivals;
pub(super) mod queues;

use axum::{Json, extract::State};
use serde_json::{Map, Value, json};
use wakeline_web::Params;

use super::{
    Answer, Door,
    analytics::{Range, average_ms, joined, workers},
    listing::QueueQuery,
    query::TimesQuery,
    refusals::{BadParameter, StoreUnreachable},
    resources::counts_json,
    short_time_text,
};
use crate::{browse::Page, counters::CounterRow};

/// Queues of the answer at most.
const MAX_QUEUES: i64 = 1_000;

fn point(range: &Range, count: &CounterRow, nodes: &Map<String, Value>) -> Value {
    let mut point = json!({
        "timestamp": short_time_text(count.minute_us),
        "ingested": count.pushed,
        "processed": count.completed,
        "popped": count.popped,
        "popMessages": count.popped,
        "failed": count.failed,
        "ackFailed": count.failed,
        "deadLetter": count.dead,
        "dlqCount": count.dead,
        "dbErrors": count.store_failures,
        "ingestedPerSecond": range.per_second(count.pushed),
        "processedPerSecond": range.per_second(count.completed),
        "popPerSecond": range.per_second(count.popped),
        "avgLagMs": average_ms(count),
        "maxLagMs": count.max_lag_us / 1_000,
    });
    for (name, value) in nodes {
        point[name] = value.clone();
    }
    point
}

/// Messages per call; without calls, none.
#[expect(clippy::cast_precision_loss, reason = "a ratio is for reading")]
fn ratio(messages: i64, calls: i64) -> f64 {
    let ratio = messages as f64 / calls.max(1) as f64;
    if calls > 0 {
        (ratio * 100.0).round() / 100.0
    } else {
        0.0
    }
}

/// Messages, leases, and what was done in a time (the last hour by default).
#[utoipa::path(
    get, path = "/api/v1/status", tag = "queue",
    params(TimesQuery, QueueQuery),
    responses(
        (status = 200, description = "The newest 1000 queues, what was done per time, and the nodes", body = Object),
        BadParameter,
    )
)]
pub(super) async fn status(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let overview = door.overview().await?;
    let filter = QueueQuery::read(&params, door.limits())?.filter();
    let page = Page::first(MAX_QUEUES);
    let queues = door.queues(&filter, page).await?.rows;
    let series = joined(&door, &range).await?;
    let leased = door.leases(&filter).await?;
    let mut done = CounterRow::default();
    for (count, _) in &series {
        done.add(count);
    }
    let mut messages = counts_json(overview.counts);
    messages["requests"] = json!({
        "push": done.push_requests, "pop": done.pop_requests, "ack": done.ack_requests,
    });
    messages["batchEfficiency"] = json!({
        "push": ratio(done.pushed, done.push_requests),
        "pop": ratio(done.popped, done.pop_requests),
        "ack": ratio(done.completed + done.failed, done.ack_requests),
    });
    Ok(Json(range.answer(json!({
        "pointCount": series.len(),
        "throughput": series
            .iter()
            .map(|(count, nodes)| point(&range, count, nodes))
            .collect::<Vec<_>>(),
        "messages": messages,
        "leases": {
            "active": leased.leases,
            "partitionsWithLeases": leased.partitions,
            "totalBatchSize": overview.counts.processing,
            "totalAcked": done.completed,
        },
        "errors": {
            "ackFailed": done.failed,
            "dbErrors": done.store_failures,
            "dlqMessages": overview.counts.dead_letter,
        },
        "deadLetterQueue": {"totalMessages": overview.counts.dead_letter},
        "queues": queues.iter().map(|queue| json!({
            "id": queue.id, "name": queue.name, "namespace": queue.namespace, "task": queue.task,
            "partitions": queue.partitions, "totalConsumed": queue.consumed,
        })).collect::<Vec<_>>(),
        "workers": workers(&door).await?,
        "statsAge": 0,
    }))))
}

/// Nothing is buffered here: what is not durable is refused.
#[utoipa::path(
    get, path = "/api/v1/status/buffers", tag = "queue",
    responses((status = 200, description = "Always empty", body = Object), StoreUnreachable)
)]
pub(super) async fn buffers(State(door): Door) -> Answer<Value> {
    let answers = door.now_us().await.is_ok();
    Ok(Json(json!({
        "pending": 0, "failed": 0, "dbHealthy": answers, "worker": 0
    })))
}
