//! `/api/v1/messages`

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Params, Problem, path};

use super::refusals::{BadParameter, Missing, Unreachable};
use super::{
    browse::{MAX_LIMIT, MAX_ROWS, address, filter, mode, not_found, page, shown},
    created,
};
use crate::{
    browse::{MessageStatus, QUEUE_MODE, Seen},
    id,
    service::Queue,
};

/// Messages of a page that does not say.
const DEFAULT_LIMIT: i64 = 200;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageRow {
    id: Uuid,
    transaction_id: String,
    txn_hash: String,
    partition_id: Uuid,
    queue: String,
    partition: String,
    queue_path: String,
    namespace: String,
    task: String,
    queue_priority: i64,
    /// `pending`, `processing`, `completed` or `dead_letter`, for queue mode or, without it, for
    /// the group that is furthest behind.
    status: &'static str,
    queue_status: &'static str,
    bus_status: BusStatus,
    lease_expires_at: Option<String>,
    #[schema(value_type = Object)]
    data: Box<RawValue>,
    #[schema(value_type = Object)]
    payload: Box<RawValue>,
    /// `false`: it is sealed with a key that the server does not have.
    payload_available: bool,
    is_encrypted: bool,
    trace_id: Option<Uuid>,
    producer_sub: Option<String>,
    created_at: String,
    segment: Segment,
}

/// Of the groups that are not queue mode.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct BusStatus {
    consumed_by: usize,
    total_groups: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Segment {
    seq: i64,
    frame_idx: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessageList {
    messages: Vec<MessageRow>,
    #[schema(value_type = Object)]
    mode: Value,
    /// How many there are in all.
    total: i64,
}

/// A payload as it is shown.
pub(super) fn raw(payload: Option<String>) -> Box<RawValue> {
    let payload = payload.unwrap_or_else(|| "null".to_owned());
    RawValue::from_string(payload).expect("a stored payload is JSON")
}

fn row(door: &Queue, seen: &Seen) -> MessageRow {
    let message = &seen.message;
    let payload = door.shown(message);
    let is_available = payload.is_some();
    let payload = raw(payload);
    let buses = || {
        seen.readers
            .iter()
            .filter(|reader| reader.group != QUEUE_MODE)
    };
    let lease = seen.readers.first().and_then(|reader| reader.lease);
    MessageRow {
        id: message.id,
        txn_hash: id::hash(&message.transaction_id).simple().to_string(),
        transaction_id: message.transaction_id.clone(),
        partition_id: id::partition(seen.home.partition_number),
        queue_path: format!("{}/{}", seen.home.queue, seen.home.partition),
        queue: seen.home.queue.clone(),
        partition: seen.home.partition.clone(),
        namespace: seen.home.namespace.clone(),
        task: seen.home.task.clone(),
        queue_priority: seen.home.priority,
        status: seen.status.name(),
        queue_status: seen.status.name(),
        bus_status: BusStatus {
            consumed_by: buses()
                .filter(|reader| reader.position > message.position)
                .count(),
            total_groups: buses().count(),
        },
        lease_expires_at: lease
            .filter(|_| seen.status == MessageStatus::Processing)
            .map(|lease| shown(lease.until_us)),
        data: payload.clone(),
        payload,
        payload_available: is_available,
        is_encrypted: seen.was_sealed,
        trace_id: message.trace_id,
        producer_sub: message.producer_sub.clone(),
        created_at: shown(message.created_us),
        segment: Segment {
            seq: seen.segment,
            frame_idx: message.position - seen.segment,
        },
    }
}

fn status(params: &Params) -> Result<Option<MessageStatus>, Problem> {
    let Some(text) = params.text("status") else {
        return Ok(None);
    };
    let known = MessageStatus::ALL
        .into_iter()
        .find(|status| status.name() == text);
    match known {
        Some(status) => Ok(Some(status)),
        None => Err(Problem::invalid(
            "status",
            "none of pending, processing, completed, dead_letter",
        )),
    }
}

/// Messages, the newest first.
#[utoipa::path(
    get, path = "/api/v1/messages", tag = "queue",
    params(
        ("queue" = Option<String>, Query), ("partition" = Option<String>, Query),
        ("namespace" = Option<String>, Query, description = "`ns` means the same"),
        ("task" = Option<String>, Query),
        ("status" = Option<String>, Query, description = "pending, processing, completed or dead_letter"),
        ("from" = Option<String>, Query, description = "What came at this time or later"),
        ("to" = Option<String>, Query, description = "What came before this time"),
        ("limit" = Option<i64>, Query, description = "200 by default, 1000 at most"),
        ("offset" = Option<i64>, Query),
    ),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = MessageList),
        BadParameter,
        Unreachable,
    )
)]
pub(super) async fn list(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<MessageList>, Problem> {
    listed(&door, &params, None).await
}

/// The page that the parameters name, of this queue or of the one that they name.
pub(super) async fn listed(
    door: &Queue,
    params: &Params,
    queue: Option<String>,
) -> Result<Json<MessageList>, Problem> {
    let mut wanted = filter(door, params)?;
    wanted.queue = queue.or(wanted.queue);
    let status = status(params)?;
    let page = page(params, DEFAULT_LIMIT, MAX_LIMIT)?;
    let browse = door.browse();
    let listed = browse.messages(&wanted, status, page).await?;
    let queue = match &wanted.queue {
        Some(name) => browse.queue_number(name).await?.or(Some(0)),
        None => None,
    };
    let groups = browse.group_names(queue, MAX_ROWS).await?;
    Ok(Json(MessageList {
        messages: listed.rows.iter().map(|seen| row(door, seen)).collect(),
        mode: mode(&groups),
        total: listed.total,
    }))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDetail {
    #[serde(flatten)]
    row: MessageRow,
    /// How often it failed, and why the last time, if it is a dead letter.
    retry_count: i64,
    error_message: Option<String>,
    consumer_groups: Vec<GroupStatus>,
    #[schema(value_type = Object)]
    queue_config: Value,
    #[schema(value_type = Object)]
    mode: Value,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct GroupStatus {
    name: String,
    group: String,
    consumed: bool,
    lease_expires_at: Option<String>,
}

/// A message, and where its groups are.
#[utoipa::path(
    get, path = "/api/v1/messages/{partitionId}/{transactionId}", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    responses(
        (status = 200, description = "The message", body = MessageDetail),
        BadParameter,
        Missing,
        Unreachable,
    )
)]
pub(super) async fn one(
    State(door): State<Arc<Queue>>,
    named: Result<Path<(String, String)>, PathRejection>,
) -> Result<Json<MessageDetail>, Problem> {
    let (partition_id, transaction_id) = path(named)?;
    let address = address(&door, &partition_id, &transaction_id)?;
    let browse = door.browse();
    let found = browse.message(&address).await?.ok_or_else(not_found)?;
    let queue = browse.queue(&found.seen.home.queue).await?;
    let config = door.options_of(queue.as_ref());
    let position = found.seen.message.position;
    let readers = &found.seen.readers;
    let groups: Vec<String> = readers.iter().map(|reader| reader.group.clone()).collect();
    let letter = found.letters.last();
    Ok(Json(MessageDetail {
        retry_count: letter.map_or(0, |letter| letter.failures),
        error_message: letter.and_then(|letter| letter.error.clone()),
        consumer_groups: readers
            .iter()
            .map(|reader| GroupStatus {
                name: reader.group.clone(),
                group: reader.group.clone(),
                consumed: reader.position > position,
                lease_expires_at: reader
                    .lease
                    .filter(|lease| reader.position <= position && position < lease.to)
                    .map(|lease| created(lease.until_us)),
            })
            .collect(),
        queue_config: json!({
            "leaseTime": config["leaseTime"], "priority": config["priority"],
            "retryDelay": config["retryDelay"], "retryLimit": config["retryLimit"],
            "ttl": config["ttl"],
        }),
        mode: mode(&groups),
        row: row(&door, &found.seen),
    }))
}
