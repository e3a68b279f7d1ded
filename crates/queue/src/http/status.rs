//! `/api/v1/status`: how it is going.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem, ProblemDocument, path};

use super::{
    analytics::{Range, per_second},
    browse::{MAX_ROWS, page, shown},
    messages::{self, MessageList, shown_options},
    resources::{counts_json, find, listed, partition_json, partitions_of},
};
use crate::{
    browse::Page,
    error::Error,
    name,
    service::Queue,
    store::browse::{queues, tallies},
};

/// Queues of the answer at most.
const MAX_QUEUES: i64 = 1_000;

/// How everything is going: messages, leases, and what was done in a time (an hour by default).
#[utoipa::path(
    get, path = "/api/v1/status", tag = "queue",
    params(
        ("from" = Option<String>, Query), ("to" = Option<String>, Query),
        ("queue" = Option<String>, Query), ("namespace" = Option<String>, Query),
        ("task" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "The newest 1000 queues, and what was done per time", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn status(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let store = &**door.store();
    let overview = queues::overview(store).await.map_err(Error::from)?;
    let filter = queues::QueueFilter {
        name: range.queue.clone(),
        namespace: super::browse::named(&door, &params, "namespace")?,
        task: super::browse::named(&door, &params, "task")?,
    };
    let page = Page {
        limit: MAX_QUEUES,
        offset: 0,
    };
    let queues = queues::list(store, &filter, page)
        .await
        .map_err(Error::from)?
        .rows;
    let series = range.series(&door, false).await?;
    let leased: i64 = queues.iter().map(|queue| queue.leased_partitions).sum();
    let sum = |of: fn(&crate::tally::Count) -> i64| series.iter().map(of).sum::<i64>();
    let mut messages = counts_json(overview.counts);
    messages["requests"] = json!({"push": null, "pop": null, "ack": null});
    messages["batchEfficiency"] = json!({"push": null, "pop": null, "ack": null});
    Ok(Json(json!({
        "timeRange": range.shown(),
        "bucketMinutes": range.bucket_minutes(),
        "pointCount": series.len(),
        "throughput": series.iter().map(|count| json!({
            "timestamp": shown(count.minute_us),
            "ingested": count.pushed,
            "processed": count.completed,
            "popped": count.popped,
            "failed": count.failed,
            "deadLetter": count.dead,
            "ingestedPerSecond": per_second(count.pushed, range.bucket_us),
            "processedPerSecond": per_second(count.completed, range.bucket_us),
            "avgLagMs": super::analytics::average_ms(count),
            "maxLagMs": count.max_lag_us / 1_000,
        })).collect::<Vec<_>>(),
        "messages": messages,
        "leases": {
            "active": leased,
            "partitionsWithLeases": leased,
            "totalBatchSize": overview.counts.processing,
            "totalAcked": sum(|count| count.completed),
        },
        "errors": {
            "ackFailed": sum(|count| count.failed),
            "dbErrors": 0,
            "dlqMessages": overview.counts.dead_letter,
        },
        "deadLetterQueue": {"totalMessages": overview.counts.dead_letter},
        "queues": queues.iter().map(|queue| json!({
            "id": queue.id, "name": queue.name, "namespace": queue.namespace, "task": queue.task,
            "partitions": queue.partitions, "totalConsumed": queue.consumed,
        })).collect::<Vec<_>>(),
        "workers": [],
        "statsAge": 0,
    })))
}

/// Queues with their counts, the newest first.
#[utoipa::path(
    get, path = "/api/v1/status/queues", tag = "queue",
    params(
        ("namespace" = Option<String>, Query), ("task" = Option<String>, Query),
        ("limit" = Option<i64>, Query, description = "1000 by default, 10000 at most"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue_list(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let found = listed(&door, &params).await?;
    Ok(Json(json!({
        "queues": found.rows.iter().map(|queue| json!({
            "id": queue.id,
            "name": queue.name,
            "namespace": queue.namespace,
            "task": queue.task,
            "createdAt": shown(queue.created_us),
            "partitions": queue.partitions,
            "oldestMessage": queue.oldest_us.map(shown),
            "messages": counts_json(queue.counts),
        })).collect::<Vec<_>>(),
        "total": found.total,
    })))
}

/// A queue with its options and partitions.
#[utoipa::path(
    get, path = "/api/v1/status/queues/{queue}", tag = "queue",
    params(
        ("queue" = String, Path),
        ("limit" = Option<i64>, Query, description = "Partitions; 10000 by default and at most"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "The queue", body = Object),
        (status = 404, description = "There is none", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue(
    State(door): State<Arc<Queue>>,
    named: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let page = page(&params, MAX_ROWS, MAX_ROWS)?;
    let queue = find(&door, named).await?;
    let partitions = partitions_of(&door, Some(queue.number), page).await?;
    let mut config = shown_options(&queue.options);
    config["maxQueueSize"] = config["maxSize"].clone();
    Ok(Json(json!({
        "queue": {
            "id": queue.id,
            "name": queue.name,
            "namespace": queue.namespace,
            "task": queue.task,
            "priority": queue.priority,
            "createdAt": shown(queue.created_us),
            "config": config,
        },
        "totals": {"messages": counts_json(queue.counts)},
        "partitions": partitions.rows.iter().map(partition_json).collect::<Vec<_>>(),
        "partitionCount": partitions.total,
    })))
}

/// The messages of a queue, the newest first.
#[utoipa::path(
    get, path = "/api/v1/status/queues/{queue}/messages", tag = "queue",
    params(
        ("queue" = String, Path), ("partition" = Option<String>, Query),
        ("status" = Option<String>, Query, description = "pending, processing, completed or dead_letter"),
        ("limit" = Option<i64>, Query, description = "200 by default, 1000 at most"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = MessageList),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue_messages(
    State(door): State<Arc<Queue>>,
    named: Result<Path<String>, PathRejection>,
    params: Params,
) -> Result<Json<MessageList>, Problem> {
    let queue = path(named)?;
    name::check("queue", &queue, door.limits().max_name)?;
    messages::listed(&door, &params, Some(queue)).await
}

/// How many messages came per hour (or `interval=minute` or `day`), in a time (a day by default).
#[utoipa::path(
    get, path = "/api/v1/status/analytics", tag = "queue",
    params(
        ("from" = Option<String>, Query), ("to" = Option<String>, Query),
        ("interval" = Option<String>, Query, description = "minute, hour or day"),
        ("queue" = Option<String>, Query),
    ),
    responses(
        (status = 200, description = "A number per interval", body = Object),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn analytics(
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
    let counts = tallies::series(
        &**door.store(),
        (
            range.from_us / range.bucket_us * range.bucket_us,
            range.to_us,
        ),
        range.bucket_us,
        &range.queue,
        false,
    );
    let counts = counts.await.map_err(Error::from)?;
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

/// Nothing is buffered here: what is not durable is refused.
#[utoipa::path(
    get, path = "/api/v1/status/buffers", tag = "queue",
    responses(
        (status = 200, description = "Always empty", body = Object),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn buffers(State(door): State<Arc<Queue>>) -> Result<Json<Value>, Problem> {
    let answers = tallies::now(&**door.store()).await.is_ok();
    Ok(Json(json!({
        "pending": 0, "failed": 0, "dbHealthy": answers, "worker": 0
    })))
}
