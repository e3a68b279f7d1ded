//! `POST /api/v1/ack` and `/api/v1/ack/batch`

use std::borrow::Cow;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{LimitedBody, Problem, json, json_at};

use super::{Answer, Door, push::check_count, refusals::BadField};
use crate::{
    ack::{Ack, AckOutcome, AckStatus},
    browse::QUEUE_MODE,
    id, name,
    service::Limits,
    write_batch::WriteBatch,
};

/// Characters of a consumer's error text that are stored.
const MAX_ERROR: usize = 10_000;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckBody {
    pub(super) transaction_id: String,
    pub(super) partition_id: String,
    /// Without it the acknowledgement is not fenced.
    pub(super) lease_id: Option<String>,
    /// `completed` (the default) or `success`, `failed`, `retry`, `dlq`
    pub(super) status: Option<String>,
    pub(super) consumer_group: Option<String>,
    /// Why it failed.
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckBatchBody {
    #[serde(default)]
    #[schema(value_type = Vec<AckBody>)]
    acknowledgments: Vec<Box<RawValue>>,
    /// For acknowledgements that name none.
    consumer_group: Option<String>,
}

#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckAnswer {
    index: usize,
    transaction_id: String,
    success: bool,
    error: Option<String>,
    /// The same as `error` in one word: `lease_lost`, `batch_released`, `unresolvable`, `committed`,
    /// or the code of a refused field.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Cow<'static, str>>,
    lease_released: bool,
    /// The message became a dead letter.
    dlq: bool,
    /// The message was completed before.
    noop: bool,
}

/// Acknowledges a message. With a lease, it counts only while the lease is valid; without one, it only
/// moves the group forward.
#[utoipa::path(
    post, path = "/api/v1/ack", tag = "queue",
    request_body = AckBody,
    responses(
        (status = 200, description = "The outcome; `success` says whether the acknowledgement counted", body = Vec<AckAnswer>),
        BadField,
    )
)]
pub(super) async fn ack(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<Vec<AckAnswer>> {
    let body: AckBody = json(&body)?;
    let ack = request("", body, None, door.limits())?;
    let transaction_id = ack.transaction_id.clone();
    let batch = WriteBatch::of_acks(vec![ack]);
    let done = door.apply(batch).await?;
    let outcome = done.acked.first().copied().unwrap_or(AckOutcome::Unknown);
    Ok(Json(vec![answer(0, transaction_id, outcome)]))
}

/// Acknowledges messages together. If one of them is to be redelivered, all messages after it in its
/// partition are redelivered too.
#[utoipa::path(
    post, path = "/api/v1/ack/batch", tag = "queue",
    request_body = AckBatchBody,
    responses(
        (status = 200, description = "The outcome of each; `success` says whether the acknowledgement counted", body = Vec<AckAnswer>),
        BadField,
    )
)]
pub(super) async fn ack_batch(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<Vec<AckAnswer>> {
    let body: AckBatchBody = json(&body)?;
    let (count, limits) = (body.acknowledgments.len(), door.limits());
    check_count("acknowledgments", count, limits.max_items)?;
    let group = body.consumer_group.as_deref();
    name::check_given("consumerGroup", group, limits.max_name)?;
    let mut answers = Vec::with_capacity(count);
    let mut acks = Vec::with_capacity(count);
    let mut indexes = Vec::with_capacity(count);
    for (index, item) in body.acknowledgments.iter().enumerate() {
        let at = format!("acknowledgments[{index}]");
        let read = json_at(&at, item.get().as_bytes())
            .map(|body: AckBody| (body.transaction_id.clone(), body));
        let (named, read) = match read {
            Ok((named, item)) => (named, request(&at, item, group, limits)),
            Err(problem) => (String::new(), Err(problem)),
        };
        match read {
            Ok(ack) => {
                indexes.push((index, named));
                acks.push(ack);
            }
            // A bad acknowledgement is refused by itself.
            Err(problem) => answers.push(refused(index, named, &problem)),
        }
    }
    let batch = WriteBatch::of_acks(acks);
    let done = if batch.acks.is_empty() {
        Vec::new()
    } else {
        door.apply(batch).await?.acked
    };
    for ((index, named), outcome) in indexes.into_iter().zip(done) {
        answers.push(answer(index, named, outcome));
    }
    answers.sort_by_key(|answer| answer.index);
    Ok(Json(answers))
}

/// Reads an acknowledgement. `at` is its path in the body, for a refusal.
pub(super) fn request(
    at: &str,
    body: AckBody,
    group: Option<&str>,
    limits: &Limits,
) -> Result<Ack, Problem> {
    let field = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    let most = limits.max_transaction_id;
    name::check(&field("transactionId"), &body.transaction_id, most)?;
    let partition = partition(&field("partitionId"), &body.partition_id)?;
    let group = body.consumer_group.as_deref().or(group);
    let group = group.unwrap_or(QUEUE_MODE);
    name::check(&field("consumerGroup"), group, limits.max_name)?;
    let status = match body.status.as_deref() {
        None => AckStatus::Completed,
        Some(text) => status(&field("status"), text)?,
    };
    Ok(Ack {
        partition,
        group: group.to_owned(),
        transaction_id: body.transaction_id,
        lease: lease(body.lease_id.as_deref()),
        status,
        error: body.error.as_deref().map(kept),
        keeps_lease: false,
    })
}

/// The number of a partition by its id. An id of another server gives -1, which is no partition.
pub(super) fn partition(field: &str, text: &str) -> Result<i64, Problem> {
    let id: Uuid = text
        .parse()
        .map_err(|_| Problem::invalid(field, "not a UUID; send it as the pop gave it"))?;
    Ok(id::partition_number(&id).unwrap_or(-1))
}

/// Clients send an empty lease for messages that they got with autoAck.
pub(super) fn lease(text: Option<&str>) -> Option<Uuid> {
    let text = text.filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or(Uuid::nil()))
}

fn kept(error: &str) -> String {
    let text = error.replace('\0', "\u{fffd}");
    text.chars().take(MAX_ERROR).collect()
}

pub(super) fn status(field: &str, text: &str) -> Result<AckStatus, Problem> {
    AckStatus::NAMES
        .into_iter()
        .find(|(name, _)| *name == text)
        .map(|(_, status)| status)
        .ok_or_else(|| {
            let names = AckStatus::NAMES.map(|(name, _)| name).join(", ");
            Problem::invalid(field, format!("must be one of {names}"))
        })
}

/// Why an acknowledgement did not count: a code and a text.
pub(super) fn reason(outcome: AckOutcome) -> Option<(&'static str, &'static str)> {
    match outcome {
        AckOutcome::Done { .. } | AckOutcome::AlreadyDone => None,
        AckOutcome::LeaseLost => Some(("lease_lost", "invalid or expired lease")),
        AckOutcome::BatchReleased => Some((
            "batch_released",
            "invalid or expired lease: another acknowledgement of this batch was failed, retry or dlq, \
             which released the whole batch; this message is redelivered",
        )),
        AckOutcome::Unknown => Some((
            "unresolvable",
            "unresolvable: the group has no such message in this partition (never pushed, or \
             removed); if it is leased, it is redelivered",
        )),
        // Queen's word for the position up to which a group has consumed.
        AckOutcome::Passed => Some((
            "committed",
            "the message is committed: the group has completed it already, or it is a dead letter; \
             it is not redelivered",
        )),
    }
}

fn answer(index: usize, transaction_id: String, outcome: AckOutcome) -> AckAnswer {
    let (code, error) = reason(outcome).unzip();
    AckAnswer {
        index,
        transaction_id,
        success: error.is_none(),
        error: error.map(Into::into),
        code: code.map(Into::into),
        lease_released: outcome.has_released_lease(),
        dlq: outcome.is_dead(),
        noop: outcome == AckOutcome::AlreadyDone,
    }
}

fn refused(index: usize, transaction_id: String, problem: &Problem) -> AckAnswer {
    AckAnswer {
        index,
        transaction_id,
        error: Some(problem.detail().to_owned()),
        code: Some(problem.code().into()),
        ..AckAnswer::default()
    }
}
