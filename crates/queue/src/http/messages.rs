//! `/api/v1/messages`

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::Params;

use super::{
    Answer, Door,
    listing::{MAX_ROWS, MessageQuery, PageQuery, address, mode, not_found},
    query::{PathNames, one_of, query},
    refusals::{BadParameter, NotFound},
    short_time_text, time_text,
};
use crate::{
    browse::{ListedMessage, MessageFilter, MessageStatus, QUEUE_MODE},
    id,
    service::Queue,
};

/// Messages of a page without a limit.
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
    /// `false`: the payload is sealed with a key that the server does not have.
    payload_available: bool,
    is_encrypted: bool,
    trace_id: Option<Uuid>,
    producer_sub: Option<String>,
    created_at: String,
    segment: Segment,
}

/// How many groups but queue mode have consumed the message.
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

/// A payload as JSON.
pub(super) fn raw(payload: Option<String>) -> Box<RawValue> {
    let payload = payload.unwrap_or_else(|| "null".to_owned());
    RawValue::from_string(payload).expect("a stored payload is JSON")
}

fn row(door: &Queue, listed: &ListedMessage) -> MessageRow {
    let message = &listed.message;
    let payload = door.payload(message);
    let is_available = payload.is_some();
    let payload = raw(payload);
    let readers = listed.readers.iter();
    let buses = readers.filter(|reader| reader.group != QUEUE_MODE);
    let lease = listed.readers.first().and_then(|reader| reader.lease);
    MessageRow {
        id: message.id,
        txn_hash: id::hash(&message.transaction_id).simple().to_string(),
        transaction_id: message.transaction_id.clone(),
        partition_id: id::partition(listed.location.partition_number),
        queue_path: format!("{}/{}", listed.location.queue, listed.location.partition),
        queue: listed.location.queue.clone(),
        partition: listed.location.partition.clone(),
        namespace: listed.location.namespace.clone(),
        task: listed.location.task.clone(),
        queue_priority: listed.location.priority,
        status: listed.status.name(),
        queue_status: listed.status.name(),
        bus_status: BusStatus {
            total_groups: buses.clone().count(),
            consumed_by: buses
                .filter(|reader| reader.position > message.position)
                .count(),
        },
        lease_expires_at: lease
            .filter(|_| listed.status == MessageStatus::Processing)
            .map(|lease| short_time_text(lease.until_us)),
        data: payload.clone(),
        payload,
        payload_available: is_available,
        is_encrypted: listed.was_sealed,
        trace_id: message.trace_id,
        producer_sub: message.producer_sub.clone(),
        created_at: short_time_text(message.created_us),
        segment: Segment {
            seq: listed.segment,
            frame_idx: message.position - listed.segment,
        },
    }
}

query! {
    struct StatusQuery(limits) {
        /// `pending`, `processing`, `completed` or `dead_letter`.
        #[param(value_type = Option<String>)]
        status "status": MessageStatus = one_of(MessageStatus::NAMES),
    }
}

/// Messages, the newest first.
#[utoipa::path(
    get, path = "/api/v1/messages", tag = "queue",
    params(MessageQuery, StatusQuery, PageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = MessageList),
        BadParameter,
    )
)]
pub(super) async fn list(State(door): Door, params: Params) -> Answer<MessageList> {
    let filter = MessageQuery::read(&params, door.limits())?.filter();
    listed(&door, &params, filter).await
}

/// The page of these messages that the query names.
pub(super) async fn listed(
    door: &Queue,
    params: &Params,
    wanted: MessageFilter,
) -> Answer<MessageList> {
    let status = StatusQuery::read(params, door.limits())?.status;
    let page = PageQuery::read(params, door.limits())?.page(DEFAULT_LIMIT);
    let found = door.messages(&wanted, status, page).await?;
    let queue = match &wanted.queue {
        Some(name) => door.queue_number(name).await?.or(Some(0)),
        None => None,
    };
    let groups = door.group_names(queue, MAX_ROWS).await?;
    let messages = found.rows.iter().map(|message| row(door, message));
    Ok(Json(MessageList {
        messages: messages.collect(),
        mode: mode(&groups),
        total: found.total,
    }))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDetail {
    #[serde(flatten)]
    row: MessageRow,
    /// For a dead letter: how often it failed, and why the last time.
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

/// A message, and which groups have consumed it.
#[utoipa::path(
    get, path = "/api/v1/messages/{partitionId}/{transactionId}", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    responses(
        (status = 200, description = "The message", body = MessageDetail),
        BadParameter,
        NotFound,
    )
)]
pub(super) async fn one(
    State(door): Door,
    PathNames((partition_id, transaction_id)): PathNames<(String, String)>,
) -> Answer<MessageDetail> {
    let address = address(&door, &partition_id, &transaction_id)?;
    let found = door.message(&address).await?.ok_or_else(not_found)?;
    let queue = door.queue(&found.message.location.queue).await?;
    let config = door.options_of(queue.as_ref());
    let position = found.message.message.position;
    let readers = &found.message.readers;
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
                    .map(|lease| time_text(lease.until_us)),
            })
            .collect(),
        queue_config: json!({
            "leaseTime": config["leaseTime"], "priority": config["priority"],
            "retryDelay": config["retryDelay"], "retryLimit": config["retryLimit"],
            "ttl": config["ttl"],
        }),
        mode: mode(&groups),
        row: row(&door, &found.message),
    }))
}
