//! How long messages had waited when they were popped.

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use super::range::{Range, RangeQuery, average_ms, most_ms};
use crate::http::{Answer, Door, refusals::BadParameter, second_text};

/// How long messages waited for a pop, by queue and time step.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-lag", tag = "queue",
    params(RangeQuery),
    responses((status = 200, description = "Lags", body = Object), BadParameter)
)]
pub(in crate::http) async fn queue_lag(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let rows = range.series(&door, true).await?;
    let lags = rows.iter().map(|count| {
        json!({
            "queueName": count.queue,
            "bucketTime": second_text(count.minute_us),
            "bucketMinutes": range.bucket_minutes(),
            "popCount": count.popped,
            "avgLagMs": average_ms(count),
            "maxLagMs": most_ms(count),
        })
    });
    Ok(Json(lags.collect()))
}
