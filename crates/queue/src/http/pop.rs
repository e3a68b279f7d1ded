//! `GET /api/v1/pop/queue/{queue}`, `…/partition/{partition}` and `GET /api/v1/pop`

use std::{fmt::Write, sync::Arc, time::Duration};

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{
    Delivery, HoldOutcome, Params, Prefer, Problem, ProblemDocument, UnsentAnswers,
    unknown::nearest,
};

use super::{
    Door,
    query::{PathNames, flag, named, number, query, text},
    quoted,
    refusals::BadParameter,
    time, time_text, unsupported,
};
use crate::{
    browse::QUEUE_MODE,
    claim::{Claim, ClaimedPartition, PopRequest, Source, Start},
    message::Message,
    name,
    service::{ClaimGuard, Limits, Queue},
};

/// `from_beginning` is what consumers of Queen send, where every word but those for new messages
/// means all of them.
const SUBSCRIPTION_MODES: [(&str, Start); 4] = [
    ("all", Start::All),
    ("from_beginning", Start::All),
    ("new", Start::New),
    ("new-only", Start::New),
];

/// Partitions of a pop that leaves its size to the server.
const AUTOPILOT_PARTITIONS: u32 = 16;

query! {
    /// The query of a pop.
    struct PopQuery(limits) {
        /// How many messages at most, of all partitions together.
        batch "batch": u32 = number(1..=limits.max_batch),
        /// How many partitions at most; 1 by default. All are under one lease.
        partitions "partitions": u32 = number(1..=limits.max_partitions),
        /// Leave `batch` and `partitions` to the server where they are not given.
        autopilot "autopilot": bool = flag,
        /// Whether to hold the answer until there is a message.
        wait "wait": bool = flag,
        /// How long to hold it, in milliseconds.
        timeout "timeout": u64 = number(0..=longest_hold_ms(limits)),
        consumer_group "consumerGroup": String = named(limits),
        /// Acknowledge the messages as they are handed out: at most once, no lease.
        auto_ack "autoAck": bool = flag,
        /// How long the lease of this pop lasts, in seconds; by default the queue's `leaseTime`.
        lease_seconds "leaseSeconds": u64 = number(1..=limits.max_lease.as_secs()),
        /// Where a new group starts: with `all` messages (or `from_beginning`), or with those that come
        /// from now on, `new` (or `new-only`). Empty: as if it were not given.
        #[param(value_type = Option<String>)]
        subscription_mode "subscriptionMode": Start = subscription_mode,
        /// The same by time: `now`, or a time such as `2026-01-31T12:00:00Z`.
        subscription_from "subscriptionFrom": String = text,
        /// Only `false`: no pop leaves out all but a partition's newest message, and `true` is refused.
        conflation "conflation": bool = flag,
    }
}

query! {
    /// The query of a pop by namespace or task.
    struct MatchingQuery(limits) {
        /// At least one of namespace and task.
        namespace "namespace": String = named_if_given(limits),
        task "task": String = named_if_given(limits),
    }
}

/// An empty name is none.
fn named_if_given(
    limits: &Limits,
) -> impl Fn(&Params, &str) -> Result<Option<String>, Problem> + use<> {
    let named = named(limits);
    move |params, field| match params.text(field) {
        Some("") => Ok(None),
        _ => named(params, field),
    }
}

fn longest_hold_ms(limits: &Limits) -> u64 {
    u64::try_from(limits.max_hold.as_millis()).unwrap_or(u64::MAX)
}

/// The shape of an answer, for `/openapi.json`. `body` below writes it, because payloads pass through
/// as they are; a test compares the two.
#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(serde::Deserialize), serde(deny_unknown_fields))]
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
#[cfg_attr(test, derive(serde::Deserialize), serde(deny_unknown_fields))]
#[serde(rename_all = "camelCase")]
struct PoppedMessage {
    id: Uuid,
    transaction_id: String,
    trace_id: Option<Uuid>,
    data: serde_json::Value,
    /// Which delivery to the group this is: 1 is the first. A message that is redelivered, because its
    /// lease ended or because it or a message before it was not completed, counts up.
    delivery_attempt: usize,
    producer_sub: Option<String>,
    created_at: String,
    partition_id: Uuid,
    partition: String,
    lease_id: String,
    consumer_group: String,
}

/// Claims messages from any partition of a queue; can be held until there are some.
#[utoipa::path(
    get, path = "/api/v1/pop/queue/{queue}", tag = "queue",
    params(("queue" = String, Path), PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "There was no message, or none came in time"),
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_queue(
    State(door): Door,
    PathNames(named): PathNames<String>,
    params: Params,
    prefer: Prefer,
    unsent: UnsentAnswers,
) -> Result<Response, Problem> {
    let source = queue(named, None, door.limits())?;
    pop(&door, source, &params, prefer, unsent).await
}

/// Claims messages from one partition of a queue; can be held until there are some.
#[utoipa::path(
    get, path = "/api/v1/pop/queue/{queue}/partition/{partition}", tag = "queue",
    params(("queue" = String, Path), ("partition" = String, Path), PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "There was no message, or none came in time"),
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_partition(
    State(door): Door,
    PathNames((named, partition)): PathNames<(String, String)>,
    params: Params,
    prefer: Prefer,
    unsent: UnsentAnswers,
) -> Result<Response, Problem> {
    let source = queue(named, Some(partition), door.limits())?;
    pop(&door, source, &params, prefer, unsent).await
}

/// Claims messages from one of the queues that have this namespace or task; can be held until there
/// are some. The queue with the highest priority comes first; each 10 s that a queue waits add 1.
#[utoipa::path(
    get, path = "/api/v1/pop", tag = "queue",
    params(MatchingQuery, PopQuery),
    responses(
        (status = 200, description = "Messages, leased to the caller", body = PopAnswer),
        (status = 204, description = "There was no message, or none came in time"),
        BadParameter,
        (status = 503, description = "Overload, drain or outage; try again", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pop_matching(
    State(door): Door,
    params: Params,
    prefer: Prefer,
    unsent: UnsentAnswers,
) -> Result<Response, Problem> {
    let MatchingQuery { namespace, task } = MatchingQuery::read(&params, door.limits())?;
    if namespace.is_none() && task.is_none() {
        return Err(Problem::invalid(
            "namespace",
            "namespace or task is required",
        ));
    }
    pop(
        &door,
        Source::Matching { namespace, task },
        &params,
        prefer,
        unsent,
    )
    .await
}

fn queue(queue: String, partition: Option<String>, limits: &Limits) -> Result<Source, Problem> {
    name::check("queue", &queue, limits.max_name)?;
    name::check_given("partition", partition.as_deref(), limits.max_name)?;
    Ok(Source::Queue { queue, partition })
}

async fn pop(
    door: &Arc<Queue>,
    source: Source,
    params: &Params,
    prefer: Prefer,
    unsent: UnsentAnswers,
) -> Result<Response, Problem> {
    let limits = door.limits();
    let query = PopQuery::read(params, limits)?;
    refuse_conflation(&query)?;
    refuse_lease_of_auto_ack(&query)?;
    let time = hold_time(&query, prefer, limits);
    let request = request(source, query, limits)?;
    // Boxed: a held request is mostly this future, and unboxed it is stored several times over.
    let held = Box::pin(door.pop(request, time)).await?;
    let mut response = answer(held, unsent);
    if let Some(applied) = prefer.applied(time) {
        let name = HeaderName::from_static("preference-applied");
        response.headers_mut().insert(name, applied);
    }
    Ok(response)
}

/// A consumer that asks for the newest message only must not be given all of them, least of all under
/// a lease that it does not know of.
fn refuse_conflation(query: &PopQuery) -> Result<(), Problem> {
    if query.conflation != Some(true) {
        return Ok(());
    }
    Err(unsupported::conflation())
}

fn refuse_lease_of_auto_ack(query: &PopQuery) -> Result<(), Problem> {
    if query.auto_ack == Some(true) && query.lease_seconds.is_some() {
        let problem = "with autoAck there is no lease; leave out one of the two";
        return Err(Problem::invalid("leaseSeconds", problem));
    }
    Ok(())
}

fn request(source: Source, query: PopQuery, limits: &Limits) -> Result<PopRequest, Problem> {
    let start = start(&query)?.unwrap_or(limits.default_start);
    let group = query
        .consumer_group
        .unwrap_or_else(|| QUEUE_MODE.to_owned());
    let autopilot = query.autopilot.unwrap_or(false);
    let partitions = if autopilot { AUTOPILOT_PARTITIONS } else { 1 };
    Ok(PopRequest {
        source,
        start: if group == QUEUE_MODE {
            Start::All
        } else {
            start
        },
        group,
        batch: query.batch.unwrap_or(limits.default_batch),
        partitions: query.partitions.unwrap_or(partitions),
        auto_ack: query.auto_ack.unwrap_or(false),
        lease_time: query.lease_seconds.map(Duration::from_secs),
    })
}

/// Where the group starts, if the query says so. The time is the more exact of the two.
fn start(query: &PopQuery) -> Result<Option<Start>, Problem> {
    match query.subscription_from.as_deref() {
        Some("now") => return Ok(Some(Start::New)),
        Some(text) => return Ok(Some(Start::At(time("subscriptionFrom", text)?))),
        None => {}
    }
    Ok(query.subscription_mode)
}

/// Read apart from `subscriptionFrom`, so that a wrong mode is refused also beside it.
fn subscription_mode(params: &Params, field: &str) -> Result<Option<Start>, Problem> {
    let Some(word) = params.text(field).filter(|word| !word.is_empty()) else {
        return Ok(None);
    };
    let known = SUBSCRIPTION_MODES.iter().find(|(mode, _)| *mode == word);
    let Some((_, start)) = known else {
        let modes = SUBSCRIPTION_MODES.map(|(mode, _)| mode);
        let nearest = nearest(word, &modes);
        let nearest = nearest.map(|mode| format!("; did you mean `{mode}`?"));
        let (modes, nearest) = (modes.join(", "), nearest.unwrap_or_default());
        return Err(Problem::invalid(field, format!("none of {modes}{nearest}")));
    };
    Ok(Some(*start))
}

/// `wait` and `timeout` are Queen's way to ask, `Prefer: wait` is the standard's.
fn hold_time(query: &PopQuery, prefer: Prefer, limits: &Limits) -> Duration {
    match (query.wait, prefer.wait) {
        (Some(true), _) => query
            .timeout
            .map_or(limits.default_hold, Duration::from_millis),
        (None, Some(preferred)) => preferred.min(limits.max_hold),
        (Some(false), _) | (None, None) => Duration::ZERO,
    }
}

fn answer(held: HoldOutcome<ClaimGuard>, unsent: UnsentAnswers) -> Response {
    let mut response = match held.value {
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        Some(claim) => {
            let body = body(claim.claim());
            let mut response = Response::new(Delivery::body(body.into(), claim, unsent));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
    };
    held.timing.write(response.headers_mut());
    response
}

/// Written by hand, because a payload is JSON already and need not be parsed again.
fn body(claimed: &Claim) -> String {
    let payloads = claimed.messages().map(|message| message.payload.len());
    let (payloads, count) = (payloads.sum::<usize>(), claimed.messages().count());
    let mut out = String::with_capacity(256 + payloads + count * 512);
    let lease = claimed.lease.map(|id| id.to_string()).unwrap_or_default();
    let group = quoted(&claimed.group);
    let common = |part: &ClaimedPartition| {
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
            let attempt = part.deliveries.attempt(message.position);
            write_message(&mut out, message, attempt, &common);
        }
    }
    // Writing to a String cannot fail.
    let _ = write!(out, r#"],"partitionsClaimed":{}}}"#, claimed.parts.len());
    out
}

fn write_message(out: &mut String, message: &Message, attempt: usize, common: &str) {
    let trace = message.trace_id.map(|id| format!("\"{id}\""));
    let trace = trace.as_deref().unwrap_or("null");
    let sub = message.producer_sub.as_deref().map(quoted);
    let sub = sub.as_deref().unwrap_or("null");
    let _ = write!(
        out,
        r#"{{"id":"{}","transactionId":{},"traceId":{trace},"data":{},"producerSub":{sub},"createdAt":"{}","deliveryAttempt":{attempt},{common}}}"#,
        message.id,
        quoted(&message.transaction_id),
        message.payload,
        time_text(message.created_us),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::Deliveries;

    #[test]
    fn the_answer_of_a_pop_has_the_described_fields() {
        let message = Message {
            id: Uuid::from_u128(1),
            position: 0,
            transaction_id: "a".into(),
            trace_id: None,
            payload: "{}".into(),
            producer_sub: None,
            created_us: 1,
            is_sealed: false,
        };
        let claim = Claim {
            queue: "q".into(),
            namespace: String::new(),
            task: String::new(),
            group: "g".into(),
            group_number: 1,
            lease: Some(Uuid::from_u128(2)),
            time: None,
            parts: vec![ClaimedPartition {
                partition: "p".into(),
                number: 1,
                first: 0,
                end: 1,
                messages: vec![message],
                deliveries: Deliveries::default(),
                remaining: 0,
            }],
        };
        let body = body(&claim);
        let answer: PopAnswer = serde_json::from_str(&body).unwrap();
        let written: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(serde_json::to_value(&answer).unwrap(), written);
    }
}
