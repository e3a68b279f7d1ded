//! `POST /api/v1/push`

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Identity, LimitedBody, Problem, ProblemDocument, json, json_at};

use super::{Door, refusals::BadField, unsupported::refuse_binary};
use crate::{
    message::{NewMessage, PushReceipt, PushRefusal},
    name,
    seal::OtherKey,
    service::Limits,
};

/// The partition of messages that name none.
pub(super) const DEFAULT_PARTITION: &str = "Default";

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct PushBody {
    #[schema(value_type = Vec<PushItem>)]
    items: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushItem {
    pub(super) queue: String,
    /// `Default` if it is not given.
    partition: Option<String>,
    /// Any JSON; null if it is not given.
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// Unique within the partition: a second push of the same one is a duplicate. By default the
    /// message's own id.
    transaction_id: Option<String>,
    trace_id: Option<String>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct PushAnswer {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_id: Option<Uuid>,
    #[serde(rename = "queueName", skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    /// `queued`, `duplicate` or `failed`
    status: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

/// Stores messages durably and wakes the pops that wait for them. A bad message is refused by itself;
/// if all messages are refused, the answer is the refusal.
#[utoipa::path(
    post, path = "/api/v1/push", tag = "queue",
    request_body = PushBody,
    responses(
        (status = 201, description = "The messages are on disk, except those that failed; one entry per item, in order", body = Vec<PushAnswer>),
        BadField,
        (status = 413, description = "The body is too large", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full (maxSize)", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "Paused, or the database cannot be reached; nothing was accepted", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn push(
    State(door): Door,
    identity: Identity,
    LimitedBody(body): LimitedBody,
) -> Result<Response, Problem> {
    refuse_binary(&body)?;
    let body: PushBody = json(&body)?;
    check_count("items", body.items.len(), door.limits().max_items)?;
    let mut answers = Vec::with_capacity(body.items.len());
    let mut messages = Vec::with_capacity(body.items.len());
    let mut indexes = Vec::with_capacity(body.items.len());
    let mut problem = None;
    for (index, item) in body.items.iter().enumerate() {
        let at = format!("items[{index}]");
        match message(&at, item, &identity, door.limits()) {
            Ok(message) => {
                indexes.push((index, message.queue.clone()));
                messages.push(message);
            }
            Err(refused) => {
                answers.push(failed(index, None, &refused));
                problem.get_or_insert(refused);
            }
        }
    }
    for ((index, queue), pushed) in indexes.into_iter().zip(door.push(messages).await?) {
        answers.push(match pushed {
            Ok(pushed) => stored(index, queue, pushed),
            Err(refusal) => {
                let refused = refused(refusal, &queue);
                let answer = failed(index, Some(queue), &refused);
                problem.get_or_insert(refused);
                answer
            }
        });
    }
    if let Some(problem) = problem
        && answers.iter().all(|answer| answer.status == "failed")
    {
        return Err(problem);
    }
    answers.sort_by_key(|answer| answer.index);
    Ok((StatusCode::CREATED, Json(answers)).into_response())
}

pub(super) fn check_count(field: &str, found: usize, most: usize) -> Result<(), Problem> {
    if found > most {
        let problem = format!("{found} items; {most} is the most");
        return Err(Problem::invalid(field, problem));
    }
    Ok(())
}

/// Why a message was not stored, for its producer.
pub(super) fn refused(refusal: PushRefusal, queue: &str) -> Problem {
    match refusal {
        PushRefusal::Full { max_size } => Problem::overload(
            "queue-full",
            format!(
                "queue {queue} is full: its maxSize of {max_size} unconsumed messages is reached; nothing was stored, try again when some are consumed"
            ),
        ),
        PushRefusal::Paused => Problem::unavailable(
            "maintenance",
            "pushes are paused for maintenance; nothing was stored, try again later",
        ),
        PushRefusal::Unsealed => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "sealed",
            format!(
                "queue {queue} keeps its messages sealed, and this server has no key (queue.encryption_key); nothing was stored"
            ),
        ),
        PushRefusal::OtherKey { store, server } => Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "sealed",
            format!(
                "{}; nothing was stored: all nodes need the same queue.encryption_key",
                OtherKey {
                    store,
                    server: server.into_iter().collect(),
                }
            ),
        ),
        PushRefusal::QueueDeleted => Problem::unavailable(
            "queue-deleted",
            format!("queue {queue} was deleted at the same moment; nothing was stored, try again"),
        ),
    }
}

fn failed(index: usize, queue_name: Option<String>, problem: &Problem) -> PushAnswer {
    PushAnswer {
        index,
        queue_name,
        status: "failed",
        error: Some(problem.detail().to_owned()),
        code: Some(problem.code()),
        ..PushAnswer::default()
    }
}

pub(super) fn status(pushed: &PushReceipt) -> &'static str {
    if pushed.duplicate {
        "duplicate"
    } else {
        "queued"
    }
}

fn stored(index: usize, queue_name: String, pushed: PushReceipt) -> PushAnswer {
    PushAnswer {
        index,
        status: status(&pushed),
        message_id: Some(pushed.id),
        transaction_id: Some(pushed.transaction_id),
        partition_id: (!pushed.duplicate).then_some(pushed.partition_id),
        queue_name: Some(queue_name),
        ..PushAnswer::default()
    }
}

/// Reads a message. `at` is its path in the body, for a refusal.
pub(super) fn message(
    at: &str,
    item: &RawValue,
    identity: &Identity,
    limits: &Limits,
) -> Result<NewMessage, Problem> {
    let item: PushItem = json_at(at, item.get().as_bytes())?;
    let field = |name: &str| format!("{at}.{name}");
    let partition = item.partition;
    let partition = partition.unwrap_or_else(|| DEFAULT_PARTITION.to_owned());
    name::check(&field("queue"), &item.queue, limits.max_name)?;
    name::check(&field("partition"), &partition, limits.max_name)?;
    let (transaction_id, most) = (item.transaction_id.as_deref(), limits.max_transaction_id);
    name::check_given(&field("transactionId"), transaction_id, most)?;
    let trace_id = item
        .trace_id
        .map(|text| {
            text.parse()
                .map_err(|_| Problem::invalid(&field("traceId"), "not a UUID"))
        })
        .transpose()?;
    let payload = item.payload.as_deref().map_or("null", RawValue::get).into();
    Ok(NewMessage {
        queue: item.queue,
        partition,
        transaction_id: item.transaction_id,
        trace_id,
        payload,
        // The producer is the login's subject, not a value from the body.
        producer_sub: identity.subject.clone(),
        is_sealed: false,
    })
}
