//! `GET /api/v1/pop/queue/{queue}` and `…/partition/{partition}`

use std::{fmt::Write, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use wakeline_web::{Delivery, Held, Params, Prefer, Problem, ProblemDocument, path};

use crate::{
    claim::{Claimed, PopRequest},
    message::Message,
    name,
    service::{Claim, Limits, Queue},
};

/// The group of those who name none.
pub(super) const QUEUE_MODE: &str = "__QUEUE_MODE__";

/// The query of a pop. Only for the documentation: it is read by `request` below.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "read by name")]
struct PopQuery {
    /// How many messages at most; 1 by default.
    batch: Option<u32>,
    /// Whether to hold the answer until there is something.
    wait: Option<bool>,
    /// How long to hold it, in milliseconds.
    timeout: Option<u64>,
    #[param(rename = "consumerGroup")]
    consumer_group: Option<String>,
    /// Acknowledged by being handed out: at most once, no lease.
    #[param(rename = "autoAck")]
    auto_ack: Option<bool>,
}

/// The shape of an answer. Only for the documentation: it is written by `answer` below, because
/// payloads pass through as they are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PopAnswer {
    success: bool,
    queue: String,
    partition: String,
    partition_id: Uuid,
    /// Empty with autoAck.
    lease_id: String,
    consumer_group: String,
    messages: Vec<PoppedMessage>,
    partitions_claimed: u32,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PoppedMessage {
    id: Uuid,
    transaction_id: String,
    trace_id: Option<Uuid>,
    data: serde_json::Value,
    producer_sub: Option<String>,
    created_at: String,
    partition_id: Uuid,
    partition: String,
    lease_id: String,
    consumer_group: String,
}

/// Claims messages from any partition of a queue, held until there are some.
#[utoipa::path(
    get, path = "/api/v1/pop/queue/{queue}", tag = "queue",
    params(("queue" = String, Path), PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "Nothing there, or nothing came in time"),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_queue(
    State(door): State<Arc<Queue>>,
    named: Result<Path<String>, PathRejection>,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    pop(&door, path(named)?, None, &params, prefer).await
}

/// Claims messages from one partition of a queue, held until there are some.
#[utoipa::path(
    get, path = "/api/v1/pop/queue/{queue}/partition/{partition}", tag = "queue",
    params(("queue" = String, Path), ("partition" = String, Path), PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "Nothing there, or nothing came in time"),
        (status = 400, description = "Refused; the parameter is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_partition(
    State(door): State<Arc<Queue>>,
    named: Result<Path<(String, String)>, PathRejection>,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let (queue, partition) = path(named)?;
    pop(&door, queue, Some(partition), &params, prefer).await
}

async fn pop(
    door: &Arc<Queue>,
    queue: String,
    partition: Option<String>,
    params: &Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let limits = door.limits();
    let request = request(queue, partition, params, limits)?;
    let time = hold_time(params, prefer, limits)?;
    // Boxed: a held request is mostly this, and an unboxed one is kept several times over.
    let held = Box::pin(door.pop(request, time)).await?;
    let mut response = answer(held);
    if let Some(applied) = prefer.applied(time) {
        let name = HeaderName::from_static("preference-applied");
        response.headers_mut().insert(name, applied);
    }
    Ok(response)
}

fn request(
    queue: String,
    partition: Option<String>,
    params: &Params,
    limits: &Limits,
) -> Result<PopRequest, Problem> {
    name::check("queue", &queue, limits.max_name)?;
    if let Some(partition) = &partition {
        name::check("partition", partition, limits.max_name)?;
    }
    let group = params
        .text("consumerGroup")
        .unwrap_or(QUEUE_MODE)
        .to_owned();
    name::check("consumerGroup", &group, limits.max_name)?;
    Ok(PopRequest {
        queue,
        partition,
        group,
        batch: params
            .number("batch", &(1..=limits.max_batch))?
            .unwrap_or(1),
        auto_ack: params.flag("autoAck")?.unwrap_or(false),
    })
}

/// `wait` and `timeout` are Queen's way to ask, `Prefer: wait` is everybody's.
fn hold_time(params: &Params, prefer: Prefer, limits: &Limits) -> Result<Duration, Problem> {
    let longest = u64::try_from(limits.max_hold.as_millis()).unwrap_or(u64::MAX);
    let timeout = params
        .number("timeout", &(0..=longest))?
        .map(Duration::from_millis);
    let wait = params.flag("wait")?;
    Ok(match (wait, prefer.wait) {
        (Some(true), _) => timeout.unwrap_or(limits.default_hold),
        (None, Some(preferred)) => preferred.min(limits.max_hold),
        (Some(false), _) | (None, None) => Duration::ZERO,
    })
}

fn answer(held: Held<Claim>) -> Response {
    let mut response = match held.value {
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Some(claim) => {
            let text = text(claim.claimed());
            let mut response = Response::new(Delivery::body(text.into(), claim));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
    };
    held.timing.write(response.headers_mut());
    response
}

/// Written by hand, because a payload is JSON already and is not parsed again.
fn text(claimed: &Claimed) -> String {
    let payloads: usize = claimed
        .messages
        .iter()
        .map(|message| message.payload.len())
        .sum();
    let mut out = String::with_capacity(256 + payloads + claimed.messages.len() * 512);
    let lease = claimed
        .lease
        .map(|lease| lease.to_string())
        .unwrap_or_default();
    let common = format!(
        r#""partition":{},"partitionId":"{}","leaseId":"{lease}","consumerGroup":{}"#,
        quoted(&claimed.partition),
        claimed.partition_id,
        quoted(&claimed.group),
    );
    out.push_str(r#"{"success":true,"queue":"#);
    out.push_str(&quoted(&claimed.queue));
    out.push(',');
    out.push_str(&common);
    out.push_str(r#","messages":["#);
    for (index, message) in claimed.messages.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_message(&mut out, message, &common);
    }
    out.push_str(r#"],"partitionsClaimed":1}"#);
    out
}

fn write_message(out: &mut String, message: &Message, common: &str) {
    let trace = message
        .trace_id
        .map_or_else(|| "null".to_owned(), |id| format!("\"{id}\""));
    let sub = message
        .producer_sub
        .as_deref()
        .map_or_else(|| "null".to_owned(), quoted);
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        r#"{{"id":"{}","transactionId":{},"traceId":{trace},"data":{},"producerSub":{sub},"createdAt":"{}",{common}}}"#,
        message.id,
        quoted(&message.transaction_id),
        message.payload,
        created(message.created_us),
    );
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

fn created(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
        .unwrap_or_default()
}
