//! What was swept.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use super::range::{Range, bucket};
use crate::{
    http::{
        refusals::{BadParameter, Unreachable},
        times::TimesOfQueue,
    },
    service::Queue,
    tally::Count,
};

fn removed(count: &Count) -> Value {
    json!({
        "retentionMsgs": count.retained_out,
        "completedRetentionMsgs": count.completed_out,
        "evictionMsgs": count.evicted_out,
        "totalMsgs": count.retained_out + count.completed_out + count.evicted_out,
        "eventCount": count.sweeps,
    })
}

/// How many messages were removed because they were too old, by step and by rule.
///
/// `retentionSeconds`, `completedRetentionSeconds`, and as eviction `ttl` or `maxWaitTimeSeconds`.
#[utoipa::path(
    get, path = "/api/v1/analytics/retention", tag = "queue",
    params(TimesOfQueue),
    responses(
        (status = 200, description = "Counts of messages; what went with a deleted queue is not among them", body = Object),
        BadParameter,
        Unreachable,
    )
)]
pub(in crate::http) async fn retention(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let mut totals = Count::default();
    let mut series = Vec::new();
    for count in range.series(&door, false).await? {
        if count.sweeps > 0 {
            totals.add(&count);
            let mut point = removed(&count);
            point["bucket"] = bucket(count.minute_us).into();
            series.push(point);
        }
    }
    Ok(Json(range.answer(
        json!({"series": series, "totals": removed(&totals)}),
    )))
}
