//! `/api/v1/status/queues`: queues with their totals and messages.

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use crate::{
    http::{
        Answer, Door,
        listing::{LongPageQuery, MessageQuery, PageQuery, QueueQuery},
        messages::{self, MessageList, StatusQuery},
        query::PathNames,
        refusals::{BadParameter, NotFound},
        resources::{counts_json, found, listed, partition_json, queue_json},
        short_time_text,
    },
    name,
};

/// Queues with their counts, the newest first.
#[utoipa::path(
    get, path = "/api/v1/status/queues", tag = "queue",
    params(QueueQuery, LongPageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn queue_list(State(door): Door, params: Params) -> Answer<Value> {
    let listed = listed(&door, &params).await?;
    let queues = listed.rows.iter().map(|queue| {
        let mut shown = queue_json(queue);
        shown["partitions"] = queue.partitions.into();
        shown["oldestMessage"] = queue.oldest_us.map(short_time_text).into();
        shown["messages"] = counts_json(queue.counts);
        shown
    });
    let queues: Value = queues.collect();
    Ok(Json(json!({"queues": queues, "total": listed.total})))
}

/// A queue with its options and partitions.
#[utoipa::path(
    get, path = "/api/v1/status/queues/{queue}", tag = "queue",
    params(("queue" = String, Path), LongPageQuery),
    responses((status = 200, description = "The queue", body = Object), NotFound)
)]
pub(in crate::http) async fn queue(
    State(door): Door,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Answer<Value> {
    let (queue, partitions) = found(&door, queue, &params).await?;
    let mut config = door.options_of(Some(&queue));
    config.insert("maxQueueSize".into(), config["maxSize"].clone());
    let mut shown = queue_json(&queue);
    shown["priority"] = queue.priority.into();
    shown["config"] = config.into();
    Ok(Json(json!({
        "queue": shown,
        "totals": {"messages": counts_json(queue.counts)},
        "partitions": partitions.rows.iter().map(partition_json).collect::<Vec<_>>(),
        "partitionCount": partitions.total,
    })))
}

/// The messages of a queue, the newest first.
#[utoipa::path(
    get, path = "/api/v1/status/queues/{queue}/messages", tag = "queue",
    params(("queue" = String, Path), MessageQuery, StatusQuery, PageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = MessageList),
        BadParameter,
    )
)]
pub(in crate::http) async fn queue_messages(
    State(door): Door,
    PathNames(queue): PathNames<String>,
    params: Params,
) -> Answer<MessageList> {
    name::check("queue", &queue, door.limits().max_name)?;
    let mut filter = MessageQuery::read(&params, door.limits())?.filter();
    filter.queue = Some(queue);
    messages::listed(&door, &params, filter).await
}
