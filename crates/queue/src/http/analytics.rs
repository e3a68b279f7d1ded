//! `/api/v1/analytics`: what was counted per queue and time.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem, ProblemDocument};

use super::browse::{named, shown, time};
use crate::{error::Error, service::Queue, store::browse::tallies, tally::Count};

/// Steps of a time in an answer, about and at most.
const POINTS: i64 = 400;
const MAX_POINTS: i64 = 5_000;

/// A time, in steps, of one queue or of all.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) from_us: i64,
    pub(super) to_us: i64,
    pub(super) bucket_us: i64,
    pub(super) queue: Option<String>,
}

impl Range {
    pub(super) const MINUTE: i64 = 60_000_000;
    pub(super) const HOUR: i64 = 60 * Self::MINUTE;
    pub(super) const DAY: i64 = 24 * Self::HOUR;

    /// From the parameters; by default the last `length`.
    pub(super) async fn read(door: &Queue, params: &Params, length: i64) -> Result<Self, Problem> {
        let now = tallies::now(&**door.store()).await.map_err(Error::from)?;
        let to_us = time(params, "to")?.unwrap_or(now);
        let from_us = time(params, "from")?.unwrap_or((to_us - length).max(0));
        if from_us > to_us {
            return Err(Problem::invalid(
                "from",
                "after the end of the time asked for",
            ));
        }
        let steps = [1, 5, 15, 60, 6 * 60, 24 * 60].map(|minutes| minutes * Self::MINUTE);
        let fits = |step: &i64| (to_us - from_us) / step <= POINTS;
        Ok(Self {
            from_us,
            to_us,
            bucket_us: steps.into_iter().find(fits).unwrap_or(Self::DAY),
            queue: named(door, params, "queue")?,
        })
    }

    pub(super) fn shown(&self) -> Value {
        json!({"from": shown(self.from_us), "to": shown(self.to_us)})
    }

    pub(super) fn bucket_minutes(&self) -> i64 {
        self.bucket_us / Self::MINUTE
    }

    /// When its steps begin, or a refusal of `field` if they are too many.
    pub(super) fn buckets(&self, field: &str) -> Result<impl Iterator<Item = i64>, Problem> {
        let first = self.from_us / self.bucket_us;
        let last = self.to_us / self.bucket_us;
        if last - first > MAX_POINTS {
            return Err(Problem::invalid(
                field,
                format!("more than {MAX_POINTS} steps in the time asked for"),
            ));
        }
        let step = self.bucket_us;
        Ok((first..=last).map(move |at| at * step))
    }

    pub(super) async fn series(&self, door: &Queue, by_queue: bool) -> Result<Vec<Count>, Problem> {
        let range = (self.from_us / self.bucket_us * self.bucket_us, self.to_us);
        let store = &**door.store();
        let series = tallies::series(store, range, self.bucket_us, &self.queue, by_queue).await;
        Ok(series.map_err(Error::from)?)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is for reading")]
pub(super) fn per_second(count: i64, time_us: i64) -> f64 {
    count as f64 * 1e6 / time_us as f64
}

/// How long what was popped had waited; nothing was popped: nothing.
pub(super) fn average_ms(count: &Count) -> Option<i64> {
    (count.popped > 0).then(|| count.lag_us / count.popped / 1_000)
}

/// What the nodes use is told by `/metrics`; here is only the shape.
#[utoipa::path(
    get, path = "/api/v1/analytics/system-metrics", tag = "queue",
    params(("from" = Option<String>, Query), ("to" = Option<String>, Query)),
    responses(
        (status = 200, description = "Without replicas", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn system_metrics(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    Ok(Json(json!({
        "replicas": [], "replicaCount": 0, "pointCount": 0,
        "timeRange": range.shown(), "bucketMinutes": range.bucket_minutes(),
    })))
}

/// What was done in a time (an hour by default), in steps and by queue.
#[utoipa::path(
    get, path = "/api/v1/analytics/worker-metrics", tag = "queue",
    params(
        ("from" = Option<String>, Query), ("to" = Option<String>, Query),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "Counts of messages", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn worker_metrics(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let series = range.series(&door, false).await?;
    let mut by_queue: BTreeMap<String, Count> = BTreeMap::new();
    for count in range.series(&door, true).await? {
        let sum = by_queue.entry(count.queue.clone()).or_default();
        sum.popped += count.popped;
        sum.lag_us += count.lag_us;
        sum.max_lag_us = sum.max_lag_us.max(count.max_lag_us);
    }
    let sum = |of: fn(&Count) -> i64| series.iter().map(of).sum::<i64>();
    Ok(Json(json!({
        "timeRange": range.shown(),
        "bucketMinutes": range.bucket_minutes(),
        "pointCount": series.len(),
        "timeSeries": series.iter().map(|count| json!({
            "timestamp": shown(count.minute_us),
            "pushMessages": count.pushed,
            "popMessages": count.popped,
            "ackMessages": count.completed,
            "ackFailed": count.failed,
            "dlqCount": count.dead,
            "pushPerSecond": per_second(count.pushed, range.bucket_us),
            "popPerSecond": per_second(count.popped, range.bucket_us),
            "ackPerSecond": per_second(count.completed, range.bucket_us),
            "avgLagMs": average_ms(count),
            "maxLagMs": count.max_lag_us / 1_000,
        })).collect::<Vec<_>>(),
        "queues": by_queue.iter().map(|(queue, count)| json!({
            "queueName": queue,
            "popCount": count.popped,
            "avgLagMs": average_ms(count).unwrap_or_default(),
            "maxLagMs": count.max_lag_us / 1_000,
        })).collect::<Vec<_>>(),
        "summary": {
            "totalPushMessages": sum(|count| count.pushed),
            "totalPopMessages": sum(|count| count.popped),
            "totalAckMessages": sum(|count| count.completed),
            "totalAckFailed": sum(|count| count.failed),
            "totalDlq": sum(|count| count.dead),
            // Only messages are counted; requests are in `/metrics`.
            "totalPushRequests": null,
            "totalPopRequests": null,
            "totalAckRequests": null,
            "totalDbErrors": null,
            "pendingMessages": null,
        },
        "workers": [],
    })))
}

/// How long messages waited for a pop, by queue and step.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-lag", tag = "queue",
    params(
        ("from" = Option<String>, Query), ("to" = Option<String>, Query),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "Lags", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue_lag(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let rows = range.series(&door, true).await?;
    Ok(Json(
        rows.iter()
            .map(|count| {
                json!({
                    "queueName": count.queue,
                    "bucketTime": bucket(count.minute_us),
                    "bucketMinutes": range.bucket_minutes(),
                    "popCount": count.popped,
                    "avgLagMs": average_ms(count),
                    "maxLagMs": average_ms(count).map(|_| count.max_lag_us / 1_000),
                })
            })
            .collect(),
    ))
}

/// Whole seconds, as Queen shows the steps of a series.
fn bucket(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

/// What was done, by queue and step.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-ops", tag = "queue",
    params(
        ("from" = Option<String>, Query), ("to" = Option<String>, Query),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "Counts of messages", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue_ops(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let rows = range.series(&door, true).await?;
    let mut queues: Vec<&str> = rows.iter().map(|count| &*count.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let series: Vec<Value> = rows
        .iter()
        .map(|count| {
            json!({
                "bucket": bucket(count.minute_us),
                "queueName": count.queue,
                "pushMessages": count.pushed,
                "popMessages": count.popped,
                "ackSuccess": count.completed,
                "ackFailed": count.failed,
                "dlqCount": count.dead,
                "pushPerSecond": per_second(count.pushed, range.bucket_us),
                "popPerSecond": per_second(count.popped, range.bucket_us),
                "ackPerSecond": per_second(count.completed, range.bucket_us),
                "avgLagMs": average_ms(count),
                "maxLagMs": average_ms(count).map(|_| count.max_lag_us / 1_000),
                // Only messages are counted; requests are in `/metrics`.
                "pushRequests": null, "ackRequests": null, "popEmpty": null,
                "emptyPerSecond": null, "transactions": null, "parkedCount": null,
                "partitionCount": null, "partitionsCreated": null, "partitionsDeleted": null,
            })
        })
        .collect();
    Ok(Json(json!({
        "queues": queues, "series": series,
        "timeRange": range.shown(), "bucketMinutes": range.bucket_minutes(),
    })))
}

/// Who waits at this moment is told by `/v1/waits`; here is only the shape.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-parked-replicas", tag = "queue",
    params(("from" = Option<String>, Query), ("to" = Option<String>, Query)),
    responses(
        (status = 200, description = "Without a series", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn parked_replicas(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    Ok(Json(json!({
        "series": [], "replicas": [],
        "timeRange": range.shown(), "bucketMinutes": range.bucket_minutes(),
    })))
}

/// What was swept is told by `/metrics`; here is only the shape.
#[utoipa::path(
    get, path = "/api/v1/analytics/retention", tag = "queue",
    params(("from" = Option<String>, Query), ("to" = Option<String>, Query)),
    responses(
        (status = 200, description = "Without a series", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retention(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    Ok(Json(json!({
        "series": [],
        "totals": {
            "totalMsgs": null, "eventCount": null, "evictionMsgs": null, "retentionMsgs": null,
            "completedRetentionMsgs": null,
        },
        "timeRange": range.shown(), "bucketMinutes": range.bucket_minutes(),
    })))
}

/// How the database itself is doing.
#[utoipa::path(
    get, path = "/api/v1/analytics/postgres-stats", tag = "queue",
    responses(
        (status = 200, description = "What it says of its tables; nothing with SQLite", body = Object),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn postgres_stats(State(door): State<Arc<Queue>>) -> Result<Json<Value>, Problem> {
    let store = &**door.store();
    let stats = async {
        let mut stats = store.health().await?;
        stats["timestamp"] = shown(tallies::now(store).await?).into();
        Ok::<_, Error>(stats)
    };
    Ok(Json(stats.await?))
}
