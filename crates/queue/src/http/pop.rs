//! `GET /api/v1/pop/queue/{queue}`, `…/partition/{partition}` and `GET /api/v1/pop`

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
use wakeline_web::{Delivery, HoldOutcome, Params, Prefer, Problem, ProblemDocument, path};

use super::refusals::BadParameter;
use super::{created, quoted, time};
use crate::{
    claim::{Claimed, Part, PopRequest, Source, Start},
    message::Message,
    name,
    service::{Claim, Limits, Queue},
};

/// The group of those who name none.
pub(super) const QUEUE_MODE: &str = "__QUEUE_MODE__";

/// Partitions that a pop gets which leaves its size to the server.
const AUTOPILOT_PARTITIONS: u32 = 16;

/// The query of a pop. Only for the documentation: it is read by `request` below.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "read by name")]
struct PopQuery {
    /// How many messages at most, of all partitions together.
    batch: Option<u32>,
    /// How many partitions at most; 1 by default. All are under one lease.
    partitions: Option<u32>,
    /// Leave `batch` and `partitions` to the server where they are not given.
    autopilot: Option<bool>,
    /// Whether to hold the answer until there is something.
    wait: Option<bool>,
    /// How long to hold it, in milliseconds.
    timeout: Option<u64>,
    #[param(rename = "consumerGroup")]
    consumer_group: Option<String>,
    /// Acknowledged by being handed out: at most once, no lease.
    #[param(rename = "autoAck")]
    auto_ack: Option<bool>,
    /// Where a group begins that is seen for the first time: `all`, or `new` for what comes from
    /// now on.
    #[param(rename = "subscriptionMode")]
    subscription_mode: Option<String>,
    /// The same by time: `now`, or a time such as `2026-01-31T12:00:00Z`.
    #[param(rename = "subscriptionFrom")]
    subscription_from: Option<String>,
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
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_queue(
    State(door): State<Arc<Queue>>,
    named: Result<Path<String>, PathRejection>,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let source = queue(path(named)?, None, door.limits())?;
    pop(&door, source, &params, prefer).await
}

/// Claims messages from one partition of a queue, held until there are some.
#[utoipa::path(
    get, path = "/api/v1/pop/queue/{queue}/partition/{partition}", tag = "queue",
    params(("queue" = String, Path), ("partition" = String, Path), PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "Nothing there, or nothing came in time"),
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_partition(
    State(door): State<Arc<Queue>>,
    named: Result<Path<(String, String)>, PathRejection>,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let (named, partition) = path(named)?;
    let source = queue(named, Some(partition), door.limits())?;
    pop(&door, source, &params, prefer).await
}

/// Claims messages from whichever queue has this namespace or task, held until there are some. The
/// queue with the highest priority comes first; waiting adds to it.
#[utoipa::path(
    get, path = "/api/v1/pop", tag = "queue",
    params(
        ("namespace" = Option<String>, Query, description = "At least one of namespace and task"),
        ("task" = Option<String>, Query),
        PopQuery,
    ),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "Nothing there, or nothing came in time"),
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_matching(
    State(door): State<Arc<Queue>>,
    params: Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let most = door.limits().max_name;
    let text = |name: &str| -> Result<Option<String>, Problem> {
        let given = params.text(name).filter(|text| !text.is_empty());
        if let Some(text) = given {
            name::check(name, text, most)?;
        }
        Ok(given.map(ToOwned::to_owned))
    };
    let (namespace, task) = (text("namespace")?, text("task")?);
    if namespace.is_none() && task.is_none() {
        return Err(Problem::invalid(
            "namespace",
            "namespace or task is required",
        ));
    }
    pop(&door, Source::Matching { namespace, task }, &params, prefer).await
}

fn queue(queue: String, partition: Option<String>, limits: &Limits) -> Result<Source, Problem> {
    name::check("queue", &queue, limits.max_name)?;
    if let Some(partition) = &partition {
        name::check("partition", partition, limits.max_name)?;
    }
    Ok(Source::Queue { queue, partition })
}

async fn pop(
    door: &Arc<Queue>,
    source: Source,
    params: &Params,
    prefer: Prefer,
) -> Result<Response, Problem> {
    let limits = door.limits();
    let request = request(source, params, limits)?;
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

fn request(source: Source, params: &Params, limits: &Limits) -> Result<PopRequest, Problem> {
    let group = params
        .text("consumerGroup")
        .unwrap_or(QUEUE_MODE)
        .to_owned();
    name::check("consumerGroup", &group, limits.max_name)?;
    let autopilot = params.flag("autopilot")?.unwrap_or(false);
    let partitions = params.number("partitions", &(1..=limits.max_partitions))?;
    let said = start(params)?;
    let start = if group == QUEUE_MODE {
        Start::All
    } else {
        said.unwrap_or(limits.default_start)
    };
    Ok(PopRequest {
        source,
        group,
        start,
        batch: params
            .number("batch", &(1..=limits.max_batch))?
            .unwrap_or(limits.default_batch),
        partitions: partitions.unwrap_or(if autopilot { AUTOPILOT_PARTITIONS } else { 1 }),
        auto_ack: params.flag("autoAck")?.unwrap_or(false),
    })
}

/// Where the group begins, if it says so. The time is the more exact of the two.
fn start(params: &Params) -> Result<Option<Start>, Problem> {
    match params.text("subscriptionFrom") {
        Some("now") => return Ok(Some(Start::New)),
        Some(text) => return Ok(Some(Start::At(time("subscriptionFrom", text)?))),
        None => {}
    }
    match params.text("subscriptionMode") {
        None => Ok(None),
        Some("all") => Ok(Some(Start::All)),
        Some("new" | "new-only") => Ok(Some(Start::New)),
        Some(_) => Err(Problem::invalid("subscriptionMode", "must be all or new")),
    }
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

fn answer(held: HoldOutcome<Claim>) -> Response {
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
        .messages()
        .map(|message| message.payload.len())
        .sum();
    let count = claimed.messages().count();
    let mut out = String::with_capacity(256 + payloads + count * 512);
    let lease = claimed
        .lease
        .map(|lease| lease.to_string())
        .unwrap_or_default();
    let group = quoted(&claimed.group);
    let common = |part: &Part| {
        format!(
            r#""partition":{},"partitionId":"{}","leaseId":"{lease}","consumerGroup":{group}"#,
            quoted(&part.partition),
            part.partition_id(),
        )
    };
    out.push_str(r#"{"success":true,"queue":"#);
    out.push_str(&quoted(&claimed.queue));
    if let Some(first) = claimed.parts.first() {
        out.push(',');
        out.push_str(&common(first));
    }
    out.push_str(r#","messages":["#);
    let mut is_first = true;
    for part in &claimed.parts {
        let common = common(part);
        for message in &part.messages {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            write_message(&mut out, message, &common);
        }
    }
    // Writing to a String cannot fail.
    let _ = write!(out, r#"],"partitionsClaimed":{}}}"#, claimed.parts.len());
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
    let _ = write!(
        out,
        r#"{{"id":"{}","transactionId":{},"traceId":{trace},"data":{},"producerSub":{sub},"createdAt":"{}",{common}}}"#,
        message.id,
        quoted(&message.transaction_id),
        message.payload,
        created(message.created_us),
    );
}
