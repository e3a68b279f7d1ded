//! `/api/v1/resources`: queues and partitions.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Params, Problem, ProblemDocument};

use super::{
    Answer, Door,
    listing::{LongPageQuery, MAX_ROWS, QueueQuery},
    query::{PathNames, named, query},
    refusals::{BadParameter, NotFound, StoreUnreachable},
    short_time_text,
};
use crate::{
    browse::{ListPage, MessageCounts, Page, PartitionRow, QueueRow},
    id, name,
    service::Queue,
};

const DEFAULT_QUEUES: i64 = 1_000;

pub(super) fn queue_not_found() -> Problem {
    Problem::not_found("there is no queue of this name").with_error("Queue not found")
}

/// `failed` is not counted: a failed message that will be redelivered is pending.
pub(super) fn counts_json(counts: MessageCounts) -> Value {
    json!({
        "total": counts.total, "pending": counts.pending, "processing": counts.processing,
        "completed": counts.completed, "failed": null, "deadLetter": counts.dead_letter,
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueItem {
    id: Uuid,
    name: String,
    namespace: String,
    task: String,
    created_at: String,
    partitions: i64,
    #[schema(value_type = Object)]
    messages: Value,
    #[schema(value_type = Object)]
    segments: Value,
    /// Not counted.
    retained_bytes: Option<i64>,
}

/// How many segments there are is not counted.
fn segments(counts: MessageCounts) -> Value {
    json!({"messages": counts.total, "segments": null})
}

impl From<&QueueRow> for QueueItem {
    fn from(queue: &QueueRow) -> Self {
        Self {
            id: queue.id,
            name: queue.name.clone(),
            namespace: queue.namespace.clone(),
            task: queue.task.clone(),
            created_at: short_time_text(queue.created_us),
            partitions: queue.partitions,
            messages: counts_json(queue.counts),
            segments: segments(queue.counts),
            retained_bytes: None,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueueItems {
    queues: Vec<QueueItem>,
    total: i64,
    kv_rows: i64,
    kv_bytes: i64,
}

/// The queues on the page that the query names.
pub(super) async fn listed(door: &Queue, params: &Params) -> Result<ListPage<QueueRow>, Problem> {
    let filter = QueueQuery::read(params, door.limits())?.filter();
    let page = LongPageQuery::read(params, door.limits())?.page(DEFAULT_QUEUES);
    Ok(door.queues(&filter, page).await?)
}

/// Queues, the newest first.
#[utoipa::path(
    get, path = "/api/v1/resources/queues", tag = "queue",
    params(QueueQuery, LongPageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = QueueItems),
        BadParameter,
    )
)]
pub(super) async fn list(State(door): Door, params: Params) -> Answer<QueueItems> {
    let listed = listed(&door, &params).await?;
    Ok(Json(QueueItems {
        queues: listed.rows.iter().map(Into::into).collect(),
        total: listed.total,
        kv_rows: 0,
        kv_bytes: 0,
    }))
}

async fn find(door: &Queue, queue: String) -> Result<QueueRow, Problem> {
    name::check("queue", &queue, door.limits().max_name)?;
    let found = door.queue(&queue).await?;
    found.ok_or_else(queue_not_found)
}

/// A queue, with the page of its partitions that the query names.
pub(super) async fn found(
    door: &Queue,
    queue: String,
    params: &Params,
) -> Result<(QueueRow, ListPage<PartitionRow>), Problem> {
    let page = LongPageQuery::read(params, door.limits())?.page(MAX_ROWS);
    let queue = find(door, queue).await?;
    let partitions = door.partitions(Some(queue.number), page).await?;
    Ok((queue, partitions))
}

/// What every answer says of a queue.
pub(super) fn queue_json(queue: &QueueRow) -> Value {
    json!({
        "id": queue.id,
        "name": queue.name,
        "namespace": queue.namespace,
        "task": queue.task,
        "createdAt": short_time_text(queue.created_us),
    })
}

pub(super) fn partition_json(partition: &PartitionRow) -> Value {
    json!({
        "id": id::partition(partition.number),
        "name": partition.name,
        "queue": partition.queue,
        "createdAt": short_time_text(partition.created_us),
        "lastActivity": (partition.last_us > 0).then(|| short_time_text(partition.last_us)),
        "oldestMessage": partition.oldest_us.map(short_time_text),
        "totalConsumed": partition.consumed,
        "messages": counts_json(partition.counts),
    })
}

/// A queue with its partitions.
#[utoipa::path(
    get, path = "/api/v1/resources/queues/{queue}", tag = "queue",
    params(("queue" = String, Path), LongPageQuery),
    responses((status = 200, description = "The queue", body = Object), NotFound)
)]
pub(super) async fn one(
    State(door): Door,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Answer<Value> {
    let (queue, partitions) = found(&door, queue, &params).await?;
    let mut answer = queue_json(&queue);
    answer["partitions"] = partitions.rows.iter().map(partition_json).collect();
    answer["partitionCount"] = partitions.total.into();
    answer["totals"] = counts_json(queue.counts);
    answer["segments"] = segments(queue.counts);
    answer["retainedBytes"] = Value::Null;
    Ok(Json(answer))
}

query! {
    struct GroupQuery(limits) {
        /// The depth for this consumer group.
        group "group": String = named(limits),
    }
}

query! {
    struct OneQueueQuery(limits) {
        queue "queue": String = named(limits),
    }
}

/// How much is left to consume in a queue, by partition.
#[utoipa::path(
    get, path = "/api/v1/resources/queues/{queue}/depth", tag = "queue",
    params(("queue" = String, Path), GroupQuery),
    responses(
        (status = 200, description = "The depth; 10000 partitions at most are listed", body = Object),
        (status = 404, description = "There is no such queue", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        StoreUnreachable,
    )
)]
pub(super) async fn depth(
    State(door): Door,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Answer<Value> {
    let group = GroupQuery::read(&params, door.limits())?.group;
    let queue = find(&door, queue).await?;
    let page = Page::first(MAX_ROWS);
    let partitions = door.partitions(Some(queue.number), page).await?;
    let mut of_group: Option<BTreeMap<i64, i64>> = None;
    if let Some(group) = &group {
        let readers = door.group_readers(group, Some(queue.number), MAX_ROWS);
        let readers = readers.await?.into_iter();
        of_group = Some(
            readers
                .map(|reader| (reader.partition_number, reader.lag))
                .collect(),
        );
    }
    // A group without a cursor in a partition has still to consume all of it.
    let pending = |partition: &PartitionRow| match &of_group {
        None => partition.counts.pending + partition.counts.processing,
        Some(lags) => *lags
            .get(&partition.number)
            .unwrap_or(&partition.counts.total),
    };
    let depths: Vec<i64> = partitions.rows.iter().map(pending).collect();
    let total: i64 = depths.iter().sum();
    let partitions = partitions.rows.iter().zip(&depths);
    let partitions = partitions
        .map(|(partition, pending)| json!({"partition": partition.name, "pending": pending}));
    Ok(Json(json!({
        "queue": queue.name,
        "group": group,
        "pending": total,
        "partitionsPending": depths.iter().filter(|pending| **pending > 0).count(),
        "conflation": false,
        "effectivePending": total,
        "partitions": partitions.collect::<Vec<_>>(),
    })))
}

/// Partitions, of one queue or of all.
#[utoipa::path(
    get, path = "/api/v1/resources/partitions", tag = "queue",
    params(OneQueueQuery, LongPageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = Object),
        BadParameter,
    )
)]
pub(super) async fn partitions(State(door): Door, params: Params) -> Answer<Value> {
    let page = LongPageQuery::read(&params, door.limits())?.page(DEFAULT_QUEUES);
    let queue = match OneQueueQuery::read(&params, door.limits())?.queue {
        None => None,
        Some(name) => Some(door.queue_number(&name).await?.unwrap_or(0)),
    };
    let found = door.partitions(queue, page).await?;
    Ok(Json(json!({
        "partitions": found.rows.iter().map(partition_json).collect::<Vec<_>>(),
        "total": found.total,
        "pagination": {"limit": page.limit, "offset": page.offset},
    })))
}
