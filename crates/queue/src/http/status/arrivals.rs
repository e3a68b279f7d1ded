//! How many messages were pushed.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use crate::{
    http::{
        analytics::Range,
        listing::short_time_text,
        query::TimesQuery,
        refusals::{BadParameter, StoreUnreachable},
    },
    service::Queue,
};

/// How many messages were pushed per hour (or `interval=minute` or `day`), in a time (the last day by
/// default).
#[utoipa::path(
    get, path = "/api/v1/status/analytics", tag = "queue",
    params(
        TimesQuery,
        ("interval" = Option<String>, Query, description = "minute, hour or day"),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "A number per interval", body = Object),
        BadParameter,
        StoreUnreachable,
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
        "from": short_time_text(range.from_us),
        "to": short_time_text(range.to_us),
        "interval": interval,
        "dataPoints": points
            .map(|at| json!({"timestamp": short_time_text(at), "messages": counted(at)}))
            .collect::<Vec<_>>(),
    })))
}
