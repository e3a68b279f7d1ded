//! How many messages came.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use crate::{
    http::{
        analytics::Range,
        browse::shown,
        refusals::{BadParameter, Unreachable},
        times::Times,
    },
    service::Queue,
};

/// How many messages came per hour (or `interval=minute` or `day`), in a time (a day by default).
#[utoipa::path(
    get, path = "/api/v1/status/analytics", tag = "queue",
    params(
        Times,
        ("interval" = Option<String>, Query, description = "minute, hour or day"),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "A number per interval", body = Object),
        BadParameter,
        Unreachable,
    )
)]
pub(in crate::http) async fn analytics(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let mut range = Range::read(&door, &params, Range::DAY).await?;
    let interval = params.text("interval").unwrap_or("hour");
    range.bucket_us = match interval {
        "minute" => Range::MINUTE,
        "hour" => Range::HOUR,
        "day" => Range::DAY,
        _ => {
            return Err(Problem::invalid("interval", "none of minute, hour, day"));
        }
    };
    let points = range.buckets("interval")?;
    let counts = range.series(&door, false).await?;
    let counted = |at: i64| {
        let found = counts.iter().find(|count| count.minute_us == at);
        found.map_or(0, |count| count.pushed)
    };
    Ok(Json(json!({
        "from": shown(range.from_us),
        "to": shown(range.to_us),
        "interval": interval,
        "dataPoints": points
            .map(|at| json!({"timestamp": shown(at), "messages": counted(at)}))
            .collect::<Vec<_>>(),
    })))
}
