//! How many messages were pushed.

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use crate::http::{
    Answer, Door,
    analytics::{Range, RangeQuery},
    query::{one_of, query},
    refusals::BadParameter,
    short_time_text,
};

const INTERVALS: [(&str, (&str, i64)); 3] = [
    ("minute", ("minute", Range::MINUTE)),
    ("hour", ("hour", Range::HOUR)),
    ("day", ("day", Range::DAY)),
];

query! {
    struct IntervalQuery(limits) {
        /// minute, hour or day
        #[param(value_type = Option<String>)]
        interval "interval": (&'static str, i64) = one_of(INTERVALS),
    }
}

/// How many messages were pushed per hour (or `interval=minute` or `day`), in a time (the last day by
/// default).
#[utoipa::path(
    get, path = "/api/v1/status/analytics", tag = "queue",
    params(RangeQuery, IntervalQuery),
    responses((status = 200, description = "A number per interval", body = Object), BadParameter)
)]
pub(in crate::http) async fn analytics(State(door): Door, params: Params) -> Answer<Value> {
    let mut range = Range::read(&door, &params, Range::DAY).await?;
    let query = IntervalQuery::read(&params, door.limits())?;
    let (interval, bucket_us) = query.interval.unwrap_or(("hour", Range::HOUR));
    range.bucket_us = bucket_us;
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
