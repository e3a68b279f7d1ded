//! `/api/v1/traces`: what consumers record about messages.

use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{LimitedBody, Params, Problem, ProblemDocument, json};

use super::{
    Answer, Door,
    dead_letters::Pagination,
    listing::{PageQuery, address, not_found},
    messages::raw,
    query::{FAR_US, PathNames, TimesQuery},
    refusals::{BadField, BadParameter},
    short_time_text,
};
use crate::{
    browse::{NewTrace, QUEUE_MODE, Trace, TraceName},
    id, name,
};

const DEFAULT_TRACES: i64 = 100;
const DEFAULT_NAMES: i64 = 50;
/// Names of one trace at most.
const MAX_NAMES: usize = 50;
/// The worker of every trace, as Queen's clients see it.
const WORKER: &str = "wakeline";

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceBody {
    transaction_id: String,
    partition_id: String,
    #[serde(default)]
    consumer_group: Option<String>,
    /// `info` by default.
    #[serde(default)]
    event_type: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    data: Option<Box<RawValue>>,
    /// One name or several.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    trace_names: Option<Value>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceAnswer {
    success: bool,
    trace_id: Uuid,
}

fn names(given: Option<Value>, most: usize) -> Result<Vec<String>, Problem> {
    let named = |field: &str, value: Value| {
        let Value::String(text) = value else {
            return Err(Problem::invalid(field, "not a text"));
        };
        name::check(field, &text, most)?;
        Ok(text)
    };
    match given {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(several)) if several.len() > MAX_NAMES => Err(Problem::invalid(
            "traceNames",
            format!("more than {MAX_NAMES} names"),
        )),
        Some(Value::Array(several)) => {
            let several = several.into_iter().enumerate();
            several
                .map(|(index, value)| named(&format!("traceNames[{index}]"), value))
                .collect()
        }
        Some(one) => Ok(vec![named("traceNames", one)?]),
    }
}

/// Records something about a message.
#[utoipa::path(
    post, path = "/api/v1/traces", tag = "queue", request_body = TraceBody,
    responses(
        (status = 201, description = "It is stored", body = TraceAnswer),
        BadField,
        (status = 404, description = "There is no such message", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn add(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Result<(StatusCode, Json<TraceAnswer>), Problem> {
    let body: TraceBody = json(&body)?;
    let address = address(&door, &body.partition_id, &body.transaction_id)?;
    let most = door.limits().max_name;
    let group = body.consumer_group.unwrap_or_else(|| QUEUE_MODE.to_owned());
    name::check("consumerGroup", &group, most)?;
    let event = body.event_type.unwrap_or_else(|| "info".to_owned());
    name::check("eventType", &event, most)?;
    let trace = NewTrace {
        id: Uuid::now_v7(),
        partition: address.partition,
        transaction_id: body.transaction_id,
        group,
        event,
        data: body
            .data
            .map_or_else(|| "{}".to_owned(), |data| data.get().to_owned()),
        worker: WORKER.to_owned(),
        names: names(body.trace_names, most)?,
    };
    let trace_id = trace.id;
    if !door.add_trace(&address, trace).await? {
        return Err(not_found());
    }
    let answer = TraceAnswer {
        success: true,
        trace_id,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TraceRow {
    id: Uuid,
    #[schema(value_type = Object)]
    data: Box<RawValue>,
    worker_id: String,
    created_at: String,
    event_type: String,
    trace_names: Vec<String>,
    consumer_group: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    message: Option<TracedMessage>,
}

/// The message of a trace.
#[derive(Debug, Serialize, ToSchema)]
struct TracedMessage {
    queue_name: Option<String>,
    partition_name: Option<String>,
    partition_id: Uuid,
    transaction_id: String,
    /// Not shown here: ask for the message.
    message_payload: Option<()>,
}

fn row(trace: Trace, with_message: bool) -> TraceRow {
    TraceRow {
        id: trace.id,
        data: raw(Some(trace.data)),
        worker_id: trace.worker,
        created_at: short_time_text(trace.created_us),
        event_type: trace.event,
        trace_names: trace.names,
        consumer_group: trace.group,
        message: with_message.then(|| TracedMessage {
            queue_name: trace.queue,
            partition_name: trace.partition_name,
            partition_id: id::partition(trace.partition),
            transaction_id: trace.transaction_id,
            message_payload: None,
        }),
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MessageTraces {
    traces: Vec<TraceRow>,
}

/// The traces of a message, the oldest first; 1000 at most.
#[utoipa::path(
    get, path = "/api/v1/traces/{partitionId}/{transactionId}", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    responses((status = 200, description = "Its traces", body = MessageTraces), BadParameter)
)]
pub(super) async fn of_message(
    State(door): Door,
    PathNames((partition_id, transaction_id)): PathNames<(String, String)>,
) -> Answer<MessageTraces> {
    let address = address(&door, &partition_id, &transaction_id)?;
    let found = door.traces_of(&address).await?;
    Ok(Json(MessageTraces {
        traces: found.into_iter().map(|trace| row(trace, false)).collect(),
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NamedTraces {
    traces: Vec<TraceRow>,
    pagination: Pagination,
    total: i64,
}

/// The traces that have a name, the newest first.
#[utoipa::path(
    get, path = "/api/v1/traces/by-name/{name}", tag = "queue",
    params(("name" = String, Path), TimesQuery, PageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = NamedTraces),
        BadParameter,
    )
)]
pub(super) async fn of_name(
    State(door): Door,
    PathNames(named): PathNames<String>,
    params: Params,
) -> Answer<NamedTraces> {
    name::check("name", &named, door.limits().max_name)?;
    let page = PageQuery::read(&params, door.limits())?.page(DEFAULT_TRACES);
    let times = TimesQuery::read(&params, door.limits())?;
    let (from, to) = (times.from_us.unwrap_or(0), times.to_us.unwrap_or(FAR_US));
    let found = door.traces_named(&named, from, to, page).await?;
    let traces = found.rows.into_iter();
    Ok(Json(NamedTraces {
        traces: traces.map(|trace| row(trace, true)).collect(),
        pagination: page.into(),
        total: found.total,
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TraceNameRow {
    trace_name: String,
    trace_count: i64,
    message_count: i64,
    last_seen: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TraceNames {
    trace_names: Vec<TraceNameRow>,
    pagination: Pagination,
    total: i64,
}

/// The names that traces have, the last used first.
#[utoipa::path(
    get, path = "/api/v1/traces/names", tag = "queue",
    params(PageQuery),
    responses(
        (status = 200, description = "A page of them, and how many there are", body = TraceNames),
        BadParameter,
    )
)]
pub(super) async fn all_names(State(door): Door, params: Params) -> Answer<TraceNames> {
    let page = PageQuery::read(&params, door.limits())?.page(DEFAULT_NAMES);
    let found = door.trace_names(page).await?;
    let row = |name: TraceName| TraceNameRow {
        trace_name: name.name,
        trace_count: name.traces,
        message_count: name.messages,
        last_seen: short_time_text(name.last_us),
    };
    Ok(Json(TraceNames {
        trace_names: found.rows.into_iter().map(row).collect(),
        pagination: page.into(),
        total: found.total,
    }))
}
