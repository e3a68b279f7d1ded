//! `POST /api/v1/ack`

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{LimitedBody, Problem, ProblemDocument, json};

use super::pop::QUEUE_MODE;
use crate::{
    ack::{Ack, Acked, Outcome, Status},
    name,
    service::{Limits, Queue},
};

/// What is kept of a consumer's error text.
const MAX_ERROR: usize = 10_000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckBody {
    transaction_id: String,
    partition_id: String,
    /// Without it the acknowledgement is not fenced.
    lease_id: Option<String>,
    /// `completed` (the default) or `success`, `failed`, `retry`, `dlq`
    status: Option<String>,
    consumer_group: Option<String>,
    /// Why it failed.
    error: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckAnswer {
    index: usize,
    transaction_id: String,
    success: bool,
    error: Option<&'static str>,
    lease_released: bool,
    /// It went to the dead letters.
    dlq: bool,
    /// It had been completed before.
    noop: bool,
}

/// Acknowledges a message: with its lease, fenced by it; without, forward only.
#[utoipa::path(
    post, path = "/api/v1/ack", tag = "queue",
    request_body = AckBody,
    responses(
        (status = 200, description = "What came of it; `success` says whether it counted", body = Vec<AckAnswer>),
        (status = 400, description = "Refused; the field is named", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 503, description = "The database cannot be reached", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn ack(
    State(door): State<Arc<Queue>>,
    LimitedBody(body): LimitedBody,
) -> Result<Json<[AckAnswer; 1]>, Problem> {
    let body: AckBody = json(&body)?;
    let transaction_id = body.transaction_id.clone();
    let acked = door.ack(request(body, door.limits())?).await?;
    Ok(Json([answer(0, transaction_id, &acked)]))
}

fn request(body: AckBody, limits: &Limits) -> Result<Ack, Problem> {
    name::check(
        "transactionId",
        &body.transaction_id,
        limits.max_transaction_id,
    )?;
    let partition_id = body
        .partition_id
        .parse()
        .map_err(|_| Problem::invalid("partitionId", "not a UUID; send it as the pop gave it"))?;
    let group = body.consumer_group.unwrap_or_else(|| QUEUE_MODE.to_owned());
    name::check("consumerGroup", &group, limits.max_name)?;
    let status = match body.status.as_deref() {
        None => Status::Completed,
        Some(text) => status(text)?,
    };
    // Clients send an empty lease for what they got with autoAck.
    let lease = body.lease_id.filter(|text| !text.is_empty());
    let lease = lease.map(|text| text.parse().unwrap_or(Uuid::nil()));
    let error = body.error.map(|text| text.replace('\0', "\u{fffd}"));
    let error = error.map(|text| text.chars().take(MAX_ERROR).collect());
    Ok(Ack {
        partition_id,
        group,
        transaction_id: body.transaction_id,
        lease,
        status,
        error,
    })
}

fn status(text: &str) -> Result<Status, Problem> {
    Status::NAMES
        .into_iter()
        .find(|(name, _)| *name == text)
        .map(|(_, status)| status)
        .ok_or_else(|| {
            let names = Status::NAMES.map(|(name, _)| name).join(", ");
            Problem::invalid("status", format!("must be one of {names}"))
        })
}

fn answer(index: usize, transaction_id: String, acked: &Acked) -> AckAnswer {
    let error = match acked.outcome {
        Outcome::Done { .. } | Outcome::AlreadyDone => None,
        Outcome::LeaseLost => Some("invalid or expired lease"),
        Outcome::Unknown => Some(
            "unresolvable: the group has no such message in this partition (never pushed, or \
             removed); if it is leased, it comes again",
        ),
        Outcome::Passed => Some("the message is completed already"),
    };
    let (lease_released, dlq) = match acked.outcome {
        Outcome::Done {
            lease_released,
            dead,
        } => (lease_released, dead),
        _ => (false, false),
    };
    AckAnswer {
        index,
        transaction_id,
        success: error.is_none(),
        error,
        lease_released,
        dlq,
        noop: acked.outcome == Outcome::AlreadyDone,
    }
}
