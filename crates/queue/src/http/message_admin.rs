//! `/api/v1/messages`: messages are deleted, retried, and moved to the dead letters.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{LimitedBody, Problem, ProblemDocument};

use super::{
    Answer, Door,
    listing::{address, not_found},
    query::{PathNames, optional_json},
    refusals::{NotFound, StoreUnreachable},
};
use crate::{browse::RetryOutcome, name};

/// The result for a message.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageAnswer {
    success: bool,
    message: &'static str,
    partition_id: String,
    transaction_id: String,
    /// The new message.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<Uuid>,
    /// Its transaction id: a new one if other groups read the partition too.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_transaction_id: Option<String>,
}

/// Deletes a message for all groups, and its dead letters.
#[utoipa::path(
    delete, path = "/api/v1/messages/{partitionId}/{transactionId}", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    responses(
        (status = 200, description = "The message is deleted", body = MessageAnswer),
        NotFound,
    )
)]
pub(super) async fn delete(
    State(door): Door,
    PathNames((partition_id, transaction_id)): PathNames<(String, String)>,
) -> Answer<MessageAnswer> {
    let address = address(&door, &partition_id, &transaction_id)?;
    if !door.delete_message(address).await? {
        return Err(not_found());
    }
    Ok(Json(MessageAnswer {
        success: true,
        message: "Message deleted",
        partition_id,
        transaction_id,
        ..MessageAnswer::default()
    }))
}

/// Appends a dead letter as a new message for the group that had it.
#[utoipa::path(
    post, path = "/api/v1/messages/{partitionId}/{transactionId}/retry", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    responses(
        (status = 200, description = "The message is appended again", body = MessageAnswer),
        (status = 404, description = "There is no such dead letter", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        (status = 409, description = "Its group was deleted", body = ProblemDocument<'static>, content_type = "application/problem+json"),
        StoreUnreachable,
    )
)]
pub(super) async fn retry(
    State(door): Door,
    PathNames((partition_id, transaction_id)): PathNames<(String, String)>,
) -> Answer<MessageAnswer> {
    let address = address(&door, &partition_id, &transaction_id)?;
    let retried = door.retry(&address).await?;
    let done = retried.iter().find_map(|retried| match retried {
        RetryOutcome::Done { id, transaction_id } => Some((*id, transaction_id.clone())),
        RetryOutcome::Gone | RetryOutcome::NoGroup => None,
    });
    match done {
        Some((message_id, new_transaction_id)) => Ok(Json(MessageAnswer {
            success: true,
            message: "Message appended again for the group that had it",
            partition_id,
            transaction_id,
            message_id: Some(message_id),
            new_transaction_id: Some(new_transaction_id),
        })),
        None if retried.contains(&RetryOutcome::NoGroup) => Err(Problem::new(
            http::StatusCode::CONFLICT,
            "conflict",
            "the consumer group that had this message was deleted, so nobody can be given it; it \
             stays a dead letter",
        )),
        None => Err(Problem::not_found(
            "no dead letter of this address; only dead letters can be retried",
        )
        .with_error("Message not found")),
    }
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeadLetterBody {
    /// By default every group that has not consumed the message.
    consumer_group: Option<String>,
    error: Option<String>,
}

/// Makes a pending message a dead letter.
#[utoipa::path(
    post, path = "/api/v1/messages/{partitionId}/{transactionId}/dlq", tag = "queue",
    params(("partitionId" = String, Path), ("transactionId" = String, Path)),
    request_body = DeadLetterBody,
    responses(
        (status = 200, description = "The message is a dead letter", body = MessageAnswer),
        NotFound,
        (status = 409, description = "The message is pending for no group: consumed, leased, or its partition is not read", body = ProblemDocument<'static>, content_type = "application/problem+json"),
    )
)]
pub(super) async fn move_to_dead_letters(
    State(door): Door,
    PathNames((partition_id, transaction_id)): PathNames<(String, String)>,
    LimitedBody(body): LimitedBody,
) -> Answer<MessageAnswer> {
    let address = address(&door, &partition_id, &transaction_id)?;
    let body: DeadLetterBody = optional_json(&body)?;
    let group = body.consumer_group.as_deref();
    name::check_given("consumerGroup", group, door.limits().max_name)?;
    let error = body.error;
    let error = error.unwrap_or_else(|| "moved here by an administrator".to_owned());
    name::check_characters("error", &error)?;
    let group = body.consumer_group;
    let moved = door.move_to_dead_letters(address, group, error).await?;
    if moved.ok_or_else(not_found)? == 0 {
        return Err(Problem::new(
            http::StatusCode::CONFLICT,
            "conflict",
            "the message is pending for no group: it is consumed or leased, or no group \
             reads its partition yet",
        ));
    }
    Ok(Json(MessageAnswer {
        success: true,
        message: "Message moved to the dead letters",
        partition_id,
        transaction_id,
        ..MessageAnswer::default()
    }))
}
