//! Counters by queue.

use std::collections::{BTreeMap, BTreeSet};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use super::range::{Range, RangeQuery, average_ms, most_ms, rounded};
use crate::{
    counters::CounterRow,
    http::{Answer, Door, refusals::BadParameter, second_text},
};

fn row(range: &Range, count: &CounterRow, parked: f64) -> Value {
    json!({
        "bucket": second_text(count.minute_us),
        "queueName": count.queue,
        "pushRequests": count.push_requests,
        "pushMessages": count.pushed,
        "popMessages": count.popped,
        "popEmpty": count.empty_pops,
        "ackRequests": count.ack_requests,
        "ackSuccess": count.completed,
        "ackFailed": count.failed,
        "transactions": count.transactions,
        "dlqCount": count.dead,
        "partitionsCreated": count.partitions_made,
        "partitionsDeleted": count.partitions_deleted,
        "partitionCount": count.partitions,
        "pushPerSecond": range.per_second(count.pushed),
        "popPerSecond": range.per_second(count.popped),
        "ackPerSecond": range.per_second(count.completed + count.failed),
        "emptyPerSecond": range.per_second(count.empty_pops),
        "avgLagMs": average_ms(count),
        "maxLagMs": most_ms(count),
        "parkedCount": rounded(parked),
    })
}

/// Counters by queue and time step.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-ops", tag = "queue",
    params(RangeQuery),
    responses(
        (status = 200, description = "Counts of messages and calls, and the pops that were held", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn queue_ops(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    // A time step in which pops were held and nothing else happened has a row too.
    let mut rows: BTreeMap<(i64, String), (CounterRow, f64)> = BTreeMap::new();
    for count in range.series(&door, true).await? {
        rows.insert((count.minute_us, count.queue.clone()), (count, 0.0));
    }
    for held in door.held_by_queue(range.span(), &range.queue).await? {
        let (_, parked) = rows
            .entry((held.bucket_us, held.queue.clone()))
            .or_insert_with(|| {
                let count = CounterRow {
                    minute_us: held.bucket_us,
                    queue: held.queue,
                    ..CounterRow::default()
                };
                (count, 0.0)
            });
        *parked = held.held;
    }
    let queues: BTreeSet<&str> = rows.keys().map(|(_, queue)| &**queue).collect();
    let series = rows.values().map(|(count, held)| row(&range, count, *held));
    Ok(Json(range.answer(json!({
        "queues": queues, "series": series.collect::<Vec<_>>(),
    }))))
}
