//! `/api/v1/status/queues`: queues with their totals and messages.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use crate::{
    browse::MessageFilter,
    http::{
        listing::{LongPageQuery, MessageQuery, PageQuery, QueueQuery, short_time_text},
        messages::{self, MessageList, StatusQuery},
        query::PathNames,
        refusals::{BadParameter, NotFound, StoreUnreachable},
        resources::{counts_json, found, listed, partition_json},
    },
    name,
    service::Queue,
};

/// Queues with their counts, the newest first.
#[utoipa::path(
    get, path = "/api/v1/status/queues", tag = "queue",
    params(QueueQuery, LongPageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = Object),
        BadParameter,
        StoreUnreachable,
    )
)]
pub(in crate::http) async fn queue_list(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let listed = listed(&door, &params).await?;
    Ok(Json(json!({
        "queues": listed.rows.iter().map(|queue| json!({
            "id": queue.id,
            "name": queue.name,
            "namespace": queue.namespace,
            "task": queue.task,
            "createdAt": short_time_text(queue.created_us),
            "partitions": queue.partitions,
            "oldestMessage": queue.oldest_us.map(short_time_text),
            "messages": counts_json(queue.counts),
        })).collect::<Vec<_>>(),
        "total": listed.total,
    })))
}

/// A queue with its options and partitions.
#[utoipa::path(
    get, path = "/api/v1/status/queues/{queue}", tag = "queue",
    params(("queue" = String, Path), LongPageQuery),
    responses(
        (status = 200, description = "The queue", body = Object),
        NotFound,
        StoreUnreachable,
    )
)]
pub(in crate::http) async fn queue(
    State(door): State<Arc<Queue>>,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let (queue, partitions) = found(&door, queue, &params).await?;
    let mut config = door.options_of(Some(&queue));
    config.insert("maxQueueSize".into(), config["maxSize"].clone());
    Ok(Json(json!({
        "queue": {
            "id": queue.id,
            "name": queue.name,
            "namespace": queue.namespace,
            "task": queue.task,
            "priority": queue.priority,
            "createdAt": short_time_text(queue.created_us),
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
        ("queue" = String, Path), MessageQuery, StatusQuery, PageQuery,
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = MessageList),
        BadParameter,
        StoreUnreachable,
    )
)]
pub(in crate::http) async fn queue_messages(
    State(door): State<Arc<Queue>>,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Result<Json<MessageList>, Problem> {
    name::check("queue", &queue, door.limits().max_name)?;
    let filter = MessageQuery::read(&params, door.limits())?.filter();
    let filter = MessageFilter {
        queue: Some(queue),
        ..filter
    };
    messages::listed(&door, &params, filter).await
}
