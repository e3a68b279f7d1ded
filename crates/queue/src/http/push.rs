//! `POST /api/v1/push`

use std::sync::Arc;

use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{Identity, LimitedBody, Object, Problem, ProblemDocument, json};

use crate::{
    message::{NewMessage, Pushed},
    name,
    service::{Limits, Queue},
};

/// Where a message goes that names no partition.
const DEFAULT_PARTITION: &str = "Default";

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct PushBody {
    #[schema(value_type = Vec<PushItem>)]
    items: Vec<Object<PushItem>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PushItem {
    queue: String,
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

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PushAnswer {
    index: usize,
    message_id: Uuid,
    transaction_id: String,
    #[serde(rename = "queueName")]
    queue_name: String,
    /// `queued` or `duplicate`
    status: &'static str,
}

/// Stores messages durably and wakes whoever waits for them. All are stored, or none.
#[utoipa::path(
    post, path = "/api/v1/push", tag = "queue",
    request_body = PushBody,
    responses(
        (status = 201, description = "On disk; one entry per item, in order", body = Vec<PushAnswer>),
        (status = 400, description = "Refused; the field is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached; nothing was accepted", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn push(
    State(door): State<Arc<Queue>>,
    identity: Identity,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<Vec<PushAnswer>>), Problem> {
    let body: PushBody = json(&body)?;
    let messages = messages(body, &identity, door.limits())?;
    let named: Vec<(String, String)> = messages
        .iter()
        .map(|m| (m.transaction_id.clone(), m.queue.clone()))
        .collect();
    let pushed = door.push(messages).await?;
    let answer = named
        .into_iter()
        .zip(pushed)
        .enumerate()
        .map(answer)
        .collect();
    Ok((StatusCode::CREATED, Json(answer)))
}

fn answer((index, (named, pushed)): (usize, ((String, String), Pushed))) -> PushAnswer {
    let (transaction_id, queue_name) = named;
    let status = if pushed.duplicate {
        "duplicate"
    } else {
        "queued"
    };
    PushAnswer {
        index,
        message_id: pushed.id,
        transaction_id,
        queue_name,
        status,
    }
}

fn messages(
    body: PushBody,
    identity: &Identity,
    limits: &Limits,
) -> Result<Vec<NewMessage>, Problem> {
    if body.items.len() > limits.max_items {
        let found = body.items.len();
        let most = limits.max_items;
        return Err(Problem::invalid(
            "items",
            format!("{found} items; {most} is the most"),
        ));
    }
    let numbered = body.items.into_iter().enumerate();
    numbered
        .map(|(index, Object(item))| {
            let message = message(index, item, limits)?;
            Ok(NewMessage {
                // From the login, whatever the body says.
                producer_sub: identity.subject.clone(),
                ..message
            })
        })
        .collect()
}

fn message(index: usize, item: PushItem, limits: &Limits) -> Result<NewMessage, Problem> {
    let field = |name: &str| format!("items[{index}].{name}");
    let id = Uuid::now_v7();
    let partition = item
        .partition
        .unwrap_or_else(|| DEFAULT_PARTITION.to_owned());
    let transaction_id = item.transaction_id.unwrap_or_else(|| id.to_string());
    name::check(&field("queue"), &item.queue, limits.max_name)?;
    name::check(&field("partition"), &partition, limits.max_name)?;
    name::check(
        &field("transactionId"),
        &transaction_id,
        limits.max_transaction_id,
    )?;
    let trace_id = item
        .trace_id
        .map(|text| {
            text.parse()
                .map_err(|_| Problem::invalid(&field("traceId"), "not a UUID"))
        })
        .transpose()?;
    let payload = item
        .payload
        .map_or_else(|| "null".into(), |payload| payload.get().into());
    Ok(NewMessage {
        queue: item.queue,
        partition,
        id,
        transaction_id,
        trace_id,
        payload,
        producer_sub: None,
    })
}
