//! `/streams/v1`: the state of the streaming SDK. A cycle is one transaction.

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
use wakeline_web::{Identity, LimitedBody, Object, Problem, ProblemDocument, json};

use super::{
    Answer, Door,
    ack::{lease, partition, reason, status},
    push::{PushItem, check_count, message, refused, status as push_status},
    refusals::BadField,
    time_text,
};
use crate::{
    ack::{Ack, AckStatus},
    browse::QUEUE_MODE,
    name,
    service::Queue,
    stream::{StateQuery, StreamRegistration},
    write_batch::{BatchOutcome, Rejection, StateChange, WriteBatch},
};

/// Characters of a key of a stream's state.
const MAX_KEY: usize = 1_000;
/// Rows of state in an answer at most.
const MAX_ROWS: u32 = 100_000;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct QueryBody {
    name: String,
    source_queue: String,
    sink_queue: Option<String>,
    /// The hash of the chain of operators.
    config_hash: String,
    /// Delete the state of another chain.
    #[serde(default)]
    reset: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueryAnswer {
    success: bool,
    query_id: Uuid,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as `error` in one word: `config_hash_mismatch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// Registers a stream query, or finds it again.
#[utoipa::path(
    post, path = "/streams/v1/queries", tag = "streams",
    request_body = QueryBody,
    responses(
        (status = 200, description = "The query", body = QueryAnswer),
        BadField,
        (status = 409, description = "Another chain of operators has this name", body = QueryAnswer),
    )
)]
pub(super) async fn register(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Result<Response, Problem> {
    let body: QueryBody = json(&body)?;
    let most = door.limits().max_name;
    name::check("name", &body.name, most)?;
    name::check("source_queue", &body.source_queue, most)?;
    name::check("config_hash", &body.config_hash, most)?;
    name::check_given("sink_queue", body.sink_queue.as_deref(), most)?;
    let registration = StreamRegistration {
        name: body.name.clone(),
        source_queue: body.source_queue,
        sink_queue: body.sink_queue,
        config_hash: body.config_hash.clone(),
        reset: body.reset,
    };
    let registered = door.register_stream(registration).await?;
    let mut answer = QueryAnswer {
        success: !registered.is_mismatch,
        query_id: registered.id,
        name: body.name,
        config_hash: None,
        fresh: None,
        reset: None,
        error: None,
        code: None,
    };
    if registered.is_mismatch {
        answer.code = Some("config_hash_mismatch");
        answer.error = Some(format!(
            "config_hash mismatch: the operators of query '{}' have changed. Pass reset:true to \
             wipe its state, or use another name.",
            answer.name
        ));
        return Ok((StatusCode::CONFLICT, Json(answer)).into_response());
    }
    answer.config_hash = Some(body.config_hash);
    answer.fresh = Some(registered.is_new);
    answer.reset = Some(registered.is_reset);
    Ok(Json(answer).into_response())
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CycleBody {
    query_id: String,
    partition_id: String,
    consumer_group: Option<String>,
    #[serde(default)]
    #[schema(value_type = Vec<StateOp>)]
    state_ops: Vec<Object<StateOp>>,
    #[serde(default)]
    #[schema(value_type = Vec<PushItem>)]
    push_items: Vec<Box<RawValue>>,
    #[schema(value_type = Option<CycleAck>)]
    ack: Option<Object<CycleAck>>,
    /// Whether the lease ends with the acknowledgement of its last message; true by default.
    release_lease: Option<bool>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct StateOp {
    /// `upsert` or `delete`
    #[serde(rename = "type")]
    kind: String,
    key: String,
    #[schema(value_type = Option<serde_json::Value>)]
    value: Option<Box<RawValue>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CycleAck {
    transaction_id: String,
    lease_id: Option<String>,
    status: Option<String>,
    /// How many messages that completes; only echoed.
    count: Option<u64>,
    error: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CycleAnswer {
    success: bool,
    query_id: String,
    partition_id: String,
    state_ops_applied: usize,
    push_results: Vec<CyclePush>,
    ack_result: Option<CycleAcked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The same as `error` in one word, as of an acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct CyclePush {
    index: usize,
    status: &'static str,
    message_id: Uuid,
    transaction_id: String,
    partition_id: Uuid,
    #[serde(rename = "queueName")]
    queue_name: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct CycleAcked {
    success: bool,
    count: u64,
    lease_released: bool,
    dlq: bool,
}

/// Writes state, pushes results and acknowledges the messages that they were made of, all or nothing.
#[utoipa::path(
    post, path = "/streams/v1/cycle", tag = "streams",
    request_body = CycleBody,
    responses(
        (status = 200, description = "`success` says whether it was done; if it is false, nothing was", body = CycleAnswer),
        BadField,
        (status = 404, description = "No such query", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cycle(
    State(door): Door,
    identity: Identity,
    LimitedBody(body): LimitedBody,
) -> Answer<CycleAnswer> {
    let body: CycleBody = json(&body)?;
    let batch = cycle_batch(&body, &identity, &door)?;
    let queues: Vec<String> = batch.pushes.iter().map(|push| push.queue.clone()).collect();
    let done = door.apply(batch).await?;
    let mut answer = CycleAnswer {
        success: done.rejection.is_none(),
        query_id: body.query_id,
        partition_id: body.partition_id,
        state_ops_applied: 0,
        push_results: Vec::new(),
        ack_result: None,
        error: None,
        code: None,
    };
    match &done.rejection {
        None => {
            answer.state_ops_applied = body.state_ops.len();
            let count = body
                .ack
                .as_ref()
                .and_then(|Object(ack)| ack.count)
                .unwrap_or(1);
            fill(&mut answer, done, queues, count);
        }
        Some(Rejection::Push(index, refusal)) => {
            let queue = queues.get(*index).map(String::as_str).unwrap_or_default();
            return Err(refused(*refusal, queue));
        }
        Some(Rejection::Ack(_, outcome)) => {
            let (code, error) = reason(*outcome).unwrap_or_default();
            (answer.error, answer.code) = (Some(error.to_owned()), Some(code.to_owned()));
        }
        Some(Rejection::Lease(_)) => {
            answer.error = Some("invalid or expired lease".to_owned());
            answer.code = Some("lease_lost".to_owned());
        }
        Some(Rejection::Stream) => {
            return Err(Problem::not_found(
                "query_id: no such query; register it first",
            ));
        }
    }
    Ok(Json(answer))
}

fn fill(answer: &mut CycleAnswer, done: BatchOutcome, queues: Vec<String>, count: u64) {
    let pushed = done.pushed.into_iter().zip(queues).enumerate();
    answer.push_results = pushed
        .filter_map(|(index, (pushed, queue_name))| {
            let pushed = pushed.ok()?;
            Some(CyclePush {
                index,
                status: push_status(&pushed),
                message_id: pushed.id,
                transaction_id: pushed.transaction_id,
                partition_id: pushed.partition_id,
                queue_name,
            })
        })
        .collect();
    answer.ack_result = done.acked.first().map(|outcome| CycleAcked {
        success: true,
        count,
        lease_released: outcome.has_released_lease(),
        dlq: outcome.is_dead(),
    });
}

fn cycle_batch(body: &CycleBody, identity: &Identity, door: &Queue) -> Result<WriteBatch, Problem> {
    let limits = door.limits();
    let number = partition("partition_id", &body.partition_id)?;
    let group = body.consumer_group.as_deref().unwrap_or(QUEUE_MODE);
    name::check("consumer_group", group, limits.max_name)?;
    check_count("state_ops", body.state_ops.len(), limits.max_items)?;
    check_count("push_items", body.push_items.len(), limits.max_items)?;
    let pushes = body
        .push_items
        .iter()
        .enumerate()
        .map(|(index, item)| message(&format!("push_items[{index}]"), item, identity, limits))
        .collect::<Result<_, _>>()?;
    let values = body
        .state_ops
        .iter()
        .enumerate()
        .map(|(index, Object(operation))| state_op(index, operation))
        .collect::<Result<_, _>>()?;
    let mut acks = Vec::new();
    if let Some(Object(ack)) = &body.ack {
        name::check(
            "ack.transactionId",
            &ack.transaction_id,
            limits.max_transaction_id,
        )?;
        acks.push(Ack {
            partition: number,
            group: group.to_owned(),
            transaction_id: ack.transaction_id.clone(),
            lease: lease(ack.lease_id.as_deref()),
            status: match ack.status.as_deref() {
                None => AckStatus::Completed,
                Some(text) => status("ack.status", text)?,
            },
            error: ack.error.clone().map(|text| text.replace('\0', "\u{fffd}")),
            keeps_lease: body.release_lease == Some(false),
        });
    }
    Ok(WriteBatch {
        pushes,
        acks,
        is_whole: true,
        state: Some(StateChange {
            stream: query_id(&body.query_id)?,
            partition: number,
            values,
        }),
        ..WriteBatch::default()
    })
}

fn query_id(text: &str) -> Result<Uuid, Problem> {
    text.parse()
        .map_err(|_| Problem::invalid("query_id", "not a UUID"))
}

fn state_op(index: usize, operation: &StateOp) -> Result<(String, Option<String>), Problem> {
    let field = |name: &str| format!("state_ops[{index}].{name}");
    name::check(&field("key"), &operation.key, MAX_KEY)?;
    let value = match operation.kind.as_str() {
        "upsert" => {
            let value = operation.value.as_ref();
            Some(value.map_or("null", |value| value.get()).to_owned())
        }
        "delete" => None,
        _ => return Err(Problem::invalid(&field("type"), "must be upsert or delete")),
    };
    Ok((operation.key.clone(), value))
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct StateBody {
    query_id: String,
    partition_id: String,
    /// These keys; if empty, all keys that fit the rest.
    #[serde(default)]
    keys: Vec<String>,
    key_prefix: Option<String>,
    /// Only values whose `windowEnd` is not later, in milliseconds since 1970.
    ripe_at_or_before: Option<i64>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StateAnswer {
    success: bool,
    rows: Vec<StateRowAnswer>,
}

#[derive(Debug, Serialize, ToSchema)]
struct StateRowAnswer {
    key: String,
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
    updated_at: String,
}

/// Reads the state that cycles have written.
#[utoipa::path(
    post, path = "/streams/v1/state/get", tag = "streams",
    request_body = StateBody,
    responses((status = 200, description = "What was found", body = StateAnswer), BadField)
)]
pub(super) async fn states(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<StateAnswer> {
    let body: StateBody = json(&body)?;
    check_count("keys", body.keys.len(), door.limits().max_items)?;
    for (index, key) in body.keys.iter().enumerate() {
        name::check(&format!("keys[{index}]"), key, MAX_KEY)?;
    }
    let prefix = body.key_prefix.as_deref().filter(|text| !text.is_empty());
    name::check_given("key_prefix", prefix, MAX_KEY)?;
    let query = StateQuery {
        stream: query_id(&body.query_id)?,
        partition: partition("partition_id", &body.partition_id)?,
        keys: body.keys,
        prefix: body.key_prefix,
        ripe_at_or_before: body.ripe_at_or_before,
        limit: MAX_ROWS,
    };
    let rows = door
        .stream_states(query)
        .await?
        .into_iter()
        .filter_map(|row| {
            Some(StateRowAnswer {
                key: row.key,
                value: RawValue::from_string(row.value).ok()?,
                updated_at: time_text(row.updated_us),
            })
        })
        .collect();
    Ok(Json(StateAnswer {
        success: true,
        rows,
    }))
}
