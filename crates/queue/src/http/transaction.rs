//! `POST /api/v1/transaction`

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Identity, LimitedBody, Problem, ProblemDocument, json, json_at};

use super::{
    Door,
    ack::{self, AckBody},
    push::{self, PushItem},
    refusals::BadField,
    unsupported,
};
use crate::{
    message::PushRefusal,
    service::Queue,
    write_batch::{BatchOutcome, Rejection, WriteBatch},
};

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TransactionBody {
    #[schema(value_type = Vec<Operation>)]
    operations: Vec<Box<RawValue>>,
    /// Leases that must be valid, or nothing is done.
    #[serde(default)]
    required_leases: Option<Vec<String>>,
    // What Queen's clients send beside the operations and this server does not have: read only to be
    // refused. A client whose gate or lock guard is ignored believes that it holds.
    #[schema(ignore)]
    kv: Option<Vec<IgnoredAny>>,
    #[schema(ignore)]
    timers: Option<Vec<IgnoredAny>>,
    #[schema(ignore)]
    positions: Option<Vec<IgnoredAny>>,
}

impl TransactionBody {
    /// An empty part asks for nothing.
    fn refuse_unsupported_parts(&self) -> Result<(), Problem> {
        for (field, name, part) in [
            ("kv", "key-value operations", &self.kv),
            ("timers", "timers", &self.timers),
            ("positions", "committed positions", &self.positions),
        ] {
            if part.as_ref().is_some_and(|part| !part.is_empty()) {
                return Err(unsupported::in_transaction(field, name));
            }
        }
        Ok(())
    }
}

/// Only for the documentation: an operation is read as an [`OperationBody`].
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[allow(dead_code, reason = "only described")]
enum Operation {
    Push { items: Vec<PushItem> },
    Ack(AckBody),
}

/// The fields of both types, because an operation is read before its type is known.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationBody {
    #[serde(rename = "type")]
    kind: String,
    items: Option<Vec<Box<RawValue>>>,
    transaction_id: Option<String>,
    partition_id: Option<String>,
    lease_id: Option<String>,
    status: Option<String>,
    consumer_group: Option<String>,
    error: Option<String>,
}

impl OperationBody {
    fn into_ack(self, at: &str) -> Result<AckBody, Problem> {
        let given = |field: &str, text: Option<String>| {
            text.ok_or_else(|| Problem::invalid(&format!("{at}.{field}"), "missing"))
        };
        if self.items.is_some() {
            return Err(Problem::invalid(&format!("{at}.items"), "an ack has none"));
        }
        Ok(AckBody {
            transaction_id: given("transactionId", self.transaction_id)?,
            partition_id: given("partitionId", self.partition_id)?,
            lease_id: self.lease_id,
            status: self.status,
            consumer_group: self.consumer_group,
            error: self.error,
        })
    }

    /// The items of a push.
    fn into_items(self, at: &str) -> Result<Vec<Box<RawValue>>, Problem> {
        let of_acks = [
            ("transactionId", self.transaction_id),
            ("partitionId", self.partition_id),
            ("leaseId", self.lease_id),
            ("status", self.status),
            ("consumerGroup", self.consumer_group),
            ("error", self.error),
        ];
        match of_acks.iter().find(|(_, text)| text.is_some()) {
            Some((field, _)) => Err(Problem::invalid(
                &format!("{at}.{field}"),
                "a push has none; its items have their own fields",
            )),
            None => self
                .items
                .ok_or_else(|| Problem::invalid(&format!("{at}.items"), "missing")),
        }
    }
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TransactionAnswer {
    success: bool,
    transaction_id: Uuid,
    results: Vec<TransactionResult>,
    /// Why nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// `ack_rejected`, `push_rejected` or `lease_rejected`
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// The same more exactly: of an acknowledgement `lease_lost`, `batch_released`, `unresolvable` or
    /// `committed`; of a lease `lease_lost`; of a push the code of its refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TransactionResult {
    index: usize,
    #[serde(rename = "type")]
    kind: &'static str,
    success: bool,
    transaction_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<bool>,
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dlq: Option<bool>,
}

/// Acknowledges and pushes together, all or nothing. Refused as a whole if it asks for anything else,
/// such as key-value operations (`kv`) or timers (`timers`).
#[utoipa::path(
    post, path = "/api/v1/transaction", tag = "queue",
    request_body = TransactionBody,
    responses(
        (status = 200, description = "`success` says whether it was done; if it is false, nothing was", body = TransactionAnswer),
        BadField,
        (status = 429, description = "A queue is full (maxSize)", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "Paused, or the database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn transaction(
    State(door): Door,
    identity: Identity,
    LimitedBody(body): LimitedBody,
) -> Result<Response, Problem> {
    unsupported::refuse_binary(&body)?;
    let body: TransactionBody = json(&body)?;
    body.refuse_unsupported_parts()?;
    let (batch, order) = batch(&body, &identity, &door)?;
    let transaction_id = Uuid::now_v7();
    if batch.pushes.is_empty() && batch.acks.is_empty() && batch.required.is_empty() {
        return Ok(done(transaction_id, Vec::new()));
    }
    let texts = batch.acks.iter().map(|ack| ack.transaction_id.clone());
    let texts: Vec<String> = texts.collect();
    let queues: Vec<String> = batch.pushes.iter().map(|push| push.queue.clone()).collect();
    let committed = door.apply(batch).await?;
    if let Some(rejection) = committed.rejection {
        return rejected(transaction_id, &rejection, &queues);
    }
    let results = results(order, committed, texts, queues);
    Ok(done(transaction_id, results))
}

/// What a result is of, in the order of the operations.
enum OperationKind {
    Push,
    Ack,
}

fn batch(
    body: &TransactionBody,
    identity: &Identity,
    door: &Queue,
) -> Result<(WriteBatch, Vec<OperationKind>), Problem> {
    let limits = door.limits();
    let mut batch = WriteBatch {
        is_whole: true,
        ..WriteBatch::default()
    };
    let mut order = Vec::new();
    push::check_count("operations", body.operations.len(), limits.max_items)?;
    for (index, operation) in body.operations.iter().enumerate() {
        let at = format!("operations[{index}]");
        let operation: OperationBody = json_at(&at, operation.get().as_bytes())?;
        match operation.kind.as_str() {
            "push" => {
                let items = operation.into_items(&at)?;
                for (item_index, item) in items.iter().enumerate() {
                    let at = format!("{at}.items[{item_index}]");
                    let message = push::message(&at, item, identity, limits)?;
                    order.push(OperationKind::Push);
                    batch.pushes.push(message);
                }
            }
            "ack" => {
                let item = operation.into_ack(&at)?;
                order.push(OperationKind::Ack);
                batch.acks.push(ack::request(&at, item, None, limits)?);
            }
            other => {
                let problem = format!("must be push or ack, not {other:?}; nothing was done");
                return Err(Problem::invalid(&format!("{at}.type"), problem));
            }
        }
    }
    push::check_count("operations", order.len(), limits.max_items)?;
    let leases = body.required_leases.as_deref().unwrap_or_default();
    push::check_count("requiredLeases", leases.len(), limits.max_items)?;
    let leases = leases.iter().filter_map(|text| ack::lease(Some(text)));
    batch.required = leases.collect();
    Ok((batch, order))
}

fn done(transaction_id: Uuid, results: Vec<TransactionResult>) -> Response {
    let answer = TransactionAnswer {
        success: true,
        transaction_id,
        results,
        ..TransactionAnswer::default()
    };
    Json(answer).into_response()
}

fn rejected(
    transaction_id: Uuid,
    rejection: &Rejection,
    queues: &[String],
) -> Result<Response, Problem> {
    let (error, reason, code) = match rejection {
        Rejection::Push(index, refusal) => {
            let queue = queues.get(*index).map(String::as_str).unwrap_or_default();
            let problem = push::refused(*refusal, queue);
            // A full or paused queue is refused as for a plain push, so that the client tries again.
            if !matches!(
                refusal,
                PushRefusal::Unsealed | PushRefusal::OtherKey { .. }
            ) {
                return Err(problem);
            }
            let code = problem.code();
            (problem.detail().to_owned(), "push_rejected", code)
        }
        Rejection::Ack(index, outcome) => {
            let (code, why) = ack::reason(*outcome).unwrap_or_default();
            let error = format!("acknowledgement {index}: {why}; the transaction was rolled back");
            (error, "ack_rejected", code.to_owned())
        }
        Rejection::Lease(lease) => (
            format!(
                "required lease {lease}: invalid or expired lease; the transaction was rolled back"
            ),
            "lease_rejected",
            "lease_lost".to_owned(),
        ),
        Rejection::Stream => (
            "no such stream".to_owned(),
            "push_rejected",
            "not_found".to_owned(),
        ),
    };
    let answer = TransactionAnswer {
        transaction_id,
        error: Some(error),
        reason: Some(reason),
        code: Some(code),
        ..TransactionAnswer::default()
    };
    Ok((StatusCode::OK, Json(answer)).into_response())
}

fn results(
    order: Vec<OperationKind>,
    done: BatchOutcome,
    texts: Vec<String>,
    queues: Vec<String>,
) -> Vec<TransactionResult> {
    let mut pushed = done.pushed.into_iter().zip(queues);
    let mut acked = done.acked.into_iter().zip(texts);
    order
        .into_iter()
        .enumerate()
        .filter_map(|(index, part)| {
            Some(match part {
                OperationKind::Push => {
                    let (pushed, queue) = pushed.next()?;
                    let pushed = pushed.ok()?;
                    TransactionResult {
                        index,
                        kind: "push",
                        success: true,
                        transaction_id: pushed.transaction_id,
                        message_id: Some(pushed.id),
                        partition_id: Some(pushed.partition_id),
                        queue_name: Some(queue),
                        duplicate: pushed.duplicate.then_some(true),
                        ..TransactionResult::default()
                    }
                }
                OperationKind::Ack => {
                    let (outcome, transaction_id) = acked.next()?;
                    TransactionResult {
                        index,
                        kind: "ack",
                        success: true,
                        transaction_id,
                        dlq: Some(outcome.is_dead()),
                        ..TransactionResult::default()
                    }
                }
            })
        })
        .collect()
}
