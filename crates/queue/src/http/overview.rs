//! `/api/v1/resources`: totals of everything, by namespace and by task.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Problem;

use super::{
    Answer, Door,
    analytics::{Range, per_second},
    listing::MAX_ROWS,
    refusals::StoreUnreachable,
    resources::counts_json,
    short_time_text,
};
use crate::{
    browse::{Distribution, MessageCounts, Overview, Page, QueueFilter, QueueRow, Span},
    service::Queue,
};

fn spread(spread: Distribution, unit: i64) -> Value {
    json!({
        "avg": spread.mean / unit, "max": spread.most / unit, "min": spread.least / unit,
        "median": spread.median / unit,
    })
}

fn overview_json(overview: &Overview, pushed: i64, consumed: i64) -> Value {
    json!({
        "queues": overview.queues,
        "partitions": overview.partitions,
        "namespaces": overview.namespaces,
        "tasks": overview.tasks,
        "messages": counts_json(overview.counts),
        "lag": {
            "time": spread(overview.wait_us, 1_000_000), "offset": spread(overview.offset, 1),
        },
        "throughput": {
            "ingestedPerSecond": per_second(pushed, Range::MINUTE), "processedPerSecond": per_second(consumed, Range::MINUTE),
        },
        "statsAge": 0,
        "timestamp": short_time_text(overview.now_us),
    })
}

/// Totals of everything.
#[utoipa::path(
    get, path = "/api/v1/resources/overview", tag = "queue",
    responses(
        (status = 200, description = "Counts, lags and rates, computed at the time of the request", body = Object),
        StoreUnreachable,
    )
)]
pub(super) async fn overview(State(door): Door) -> Answer<Value> {
    let overview = door.overview().await?;
    // The last minute that is over.
    let end = overview.now_us / Range::MINUTE * Range::MINUTE;
    let span = Span {
        from_us: end - Range::MINUTE,
        to_us: end,
        bucket_us: Range::MINUTE,
    };
    let series = door.counts(span, &None, false).await?;
    let (pushed, completed) = series.first().map_or((0, 0), |c| (c.pushed, c.completed));
    Ok(Json(overview_json(&overview, pushed, completed)))
}

/// Totals of the queues that have the same value of `field`.
async fn totals_by(
    door: &Queue,
    field: &'static str,
    of: impl Fn(&QueueRow) -> &str,
) -> Result<Vec<Value>, Problem> {
    let page = Page::first(MAX_ROWS);
    let listed = door.queues(&QueueFilter::default(), page).await?;
    let mut totals: BTreeMap<String, (i64, i64, MessageCounts)> = BTreeMap::new();
    for queue in listed.rows {
        let name = of(&queue);
        if name.is_empty() {
            continue;
        }
        let (queues, partitions, counts) = totals.entry(name.to_owned()).or_default();
        *queues += 1;
        *partitions += queue.partitions;
        counts.add(queue.counts);
    }
    let item = |(name, (queues, partitions, counts)): (String, (i64, i64, MessageCounts))| {
        json!({
            field: name, "queues": queues, "partitions": partitions,
            "messages": {"total": counts.total, "pending": counts.pending},
        })
    };
    Ok(totals.into_iter().map(item).collect())
}

/// Namespaces, of the newest 10000 queues.
#[utoipa::path(
    get, path = "/api/v1/resources/namespaces", tag = "queue",
    responses((status = 200, description = "All of them", body = Object), StoreUnreachable)
)]
pub(super) async fn namespaces(State(door): Door) -> Answer<Value> {
    let namespaces = totals_by(&door, "namespace", |queue| &queue.namespace).await?;
    Ok(Json(json!({"namespaces": namespaces})))
}

/// Tasks, of the newest 10000 queues.
#[utoipa::path(
    get, path = "/api/v1/resources/tasks", tag = "queue",
    responses((status = 200, description = "All of them", body = Object), StoreUnreachable)
)]
pub(super) async fn tasks(State(door): Door) -> Answer<Value> {
    let tasks = totals_by(&door, "task", |queue| &queue.task).await?;
    Ok(Json(json!({"tasks": tasks})))
}
