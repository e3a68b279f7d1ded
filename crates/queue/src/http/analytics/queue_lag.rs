//! How long messages had waited when they were popped.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use super::range::{Range, average_ms, bucket, most_ms};
use crate::{
    http::{
        refusals::{BadParameter, Unreachable},
        times::TimesOfQueue,
    },
    service::Queue,
};

/// How long messages waited for a pop, by queue and step.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-lag", tag = "queue",
    params(TimesOfQueue),
    responses(
        (status = 200, description = "Lags", body = Object),
        BadParameter,
        Unreachable,
    )
)]
pub(in crate::http) async fn queue_lag(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let rows = range.series(&door, true).await?;
    let lags = rows.iter().map(|count| {
        json!({
            "queueName": count.queue,
            "bucketTime": bucket(count.minute_us),
            "bucketMinutes": range.bucket_minutes(),
            "popCount": count.popped,
            "avgLagMs": average_ms(count),
            "maxLagMs": most_ms(count),
        })
    });
    Ok(Json(lags.collect()))
}
