//! Messages that were removed because of their age.

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use super::range::{Range, RangeQuery};
use crate::{
    counters::CounterRow,
    http::{Answer, Door, refusals::BadParameter, second_text},
};

fn removed(count: &CounterRow) -> Value {
    json!({
        "retentionMsgs": count.retained_out,
        "completedRetentionMsgs": count.completed_out,
        "evictionMsgs": count.evicted_out,
        "totalMsgs": count.retained_out + count.completed_out + count.evicted_out,
        "eventCount": count.sweeps,
    })
}

/// How many messages were removed because of their age, by time step and by option.
///
/// `retentionSeconds`, `completedRetentionSeconds`, and as eviction `ttl` or `maxWaitTimeSeconds`.
#[utoipa::path(
    get, path = "/api/v1/analytics/retention", tag = "queue",
    params(RangeQuery),
    responses(
        (status = 200, description = "Counts of messages, without those of deleted queues", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn retention(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let mut totals = CounterRow::default();
    let mut series = Vec::new();
    for count in range.series(&door, false).await? {
        if count.sweeps > 0 {
            totals.add(&count);
            let mut point = removed(&count);
            point["bucket"] = second_text(count.minute_us).into();
            series.push(point);
        }
    }
    Ok(Json(range.answer(
        json!({"series": series, "totals": removed(&totals)}),
    )))
}
