//! Administration of consumer groups.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wakeline_web::{LimitedBody, Params, Problem, json};

use super::{
    Answer, Door,
    query::{PathNames, flag, query},
    refusals::{BadField, StoreUnreachable},
    time,
};
use crate::{
    name,
    queue_admin::{GroupScope, Seek},
    service::Queue,
};

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletedGroup {
    success: bool,
    consumer_group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    deleted_partitions: u64,
    metadata_deleted: bool,
}

query! {
    struct DeletionQuery(limits) {
        /// Forget where the group started too; true by default
        delete_metadata "deleteMetadata": bool = flag,
    }
}

/// Forgets how far a group has read in all queues.
#[utoipa::path(
    delete, path = "/api/v1/consumer-groups/{group}", tag = "queue",
    params(("group" = String, Path), DeletionQuery),
    responses(
        (status = 200, description = "How many partitions it had read in", body = DeletedGroup),
        StoreUnreachable,
    )
)]
pub(super) async fn delete(
    State(door): Door,
    PathNames(group): PathNames<String>,
    params: Params,
) -> Answer<DeletedGroup> {
    let scope = scope(&door, group, None, None)?;
    delete_scope(&door, scope, &params).await
}

/// Forgets how far a group has read in one queue.
#[utoipa::path(
    delete, path = "/api/v1/consumer-groups/{group}/queues/{queue}", tag = "queue",
    params(("group" = String, Path), ("queue" = String, Path), DeletionQuery),
    responses(
        (status = 200, description = "How many partitions it had read in", body = DeletedGroup),
        StoreUnreachable,
    )
)]
pub(super) async fn delete_in_queue(
    State(door): Door,
    PathNames((group, queue)): PathNames<(String, String)>,
    params: Params,
) -> Answer<DeletedGroup> {
    let scope = scope(&door, group, Some(queue), None)?;
    delete_scope(&door, scope, &params).await
}

async fn delete_scope(door: &Queue, scope: GroupScope, params: &Params) -> Answer<DeletedGroup> {
    let query = DeletionQuery::read(params, door.limits())?;
    let with_start = query.delete_metadata.unwrap_or(true);
    let (consumer_group, queue_name) = (scope.group.clone(), scope.queue.clone());
    let deleted_partitions = door.delete_group(scope, with_start).await?;
    Ok(Json(DeletedGroup {
        success: true,
        consumer_group,
        queue_name,
        deleted_partitions,
        metadata_deleted: with_start,
    }))
}

fn scope(
    door: &Queue,
    group: String,
    queue: Option<String>,
    partition: Option<String>,
) -> Result<GroupScope, Problem> {
    let most = door.limits().max_name;
    name::check("group", &group, most)?;
    name::check_given("queue", queue.as_deref(), most)?;
    name::check_given("partition", partition.as_deref(), most)?;
    Ok(GroupScope {
        group,
        queue,
        partition,
    })
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeekBody {
    /// To the end: after all messages that are there.
    to_end: Option<bool>,
    /// To messages of this time or later.
    timestamp: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeekAnswer {
    success: bool,
    consumer_group: String,
    queue_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_name: Option<String>,
    seek_to_end: bool,
    target_timestamp: Option<String>,
    partitions_updated: u64,
}

/// Moves a group to another position in a queue. Its leases there end.
#[utoipa::path(
    post, path = "/api/v1/consumer-groups/{group}/queues/{queue}/seek", tag = "queue",
    params(("group" = String, Path), ("queue" = String, Path)),
    request_body = SeekBody,
    responses(
        (status = 200, description = "In how many partitions the group was moved", body = SeekAnswer),
        BadField,
    )
)]
pub(super) async fn seek(
    State(door): Door,
    PathNames((group, queue)): PathNames<(String, String)>,
    LimitedBody(body): LimitedBody,
) -> Answer<SeekAnswer> {
    let scope = scope(&door, group, Some(queue), None)?;
    seek_scope(&door, scope, &body).await
}

/// Moves a group to another position in a partition. Its lease there ends.
#[utoipa::path(
    post, path = "/api/v1/consumer-groups/{group}/queues/{queue}/partitions/{partition}/seek",
    tag = "queue",
    params(("group" = String, Path), ("queue" = String, Path), ("partition" = String, Path)),
    request_body = SeekBody,
    responses(
        (status = 200, description = "In how many partitions the group was moved", body = SeekAnswer),
        BadField,
    )
)]
pub(super) async fn seek_partition(
    State(door): Door,
    PathNames((group, queue, partition)): PathNames<(String, String, String)>,
    LimitedBody(body): LimitedBody,
) -> Answer<SeekAnswer> {
    let scope = scope(&door, group, Some(queue), Some(partition))?;
    seek_scope(&door, scope, &body).await
}

async fn seek_scope(door: &Queue, scope: GroupScope, body: &[u8]) -> Answer<SeekAnswer> {
    let body: SeekBody = json(body)?;
    let to = match (&body.timestamp, body.to_end) {
        (Some(_), Some(true)) => {
            let both = "give toEnd or timestamp, not both";
            return Err(Problem::invalid("toEnd", both));
        }
        (Some(text), _) => Seek::At(time("timestamp", text)?),
        (None, Some(true)) => Seek::End,
        (None, _) => {
            let neither = "Must specify toEnd=true or a timestamp";
            return Err(Problem::invalid("toEnd", neither));
        }
    };
    let answer = SeekAnswer {
        success: true,
        consumer_group: scope.group.clone(),
        queue_name: scope.queue.clone().unwrap_or_default(),
        partition_name: scope.partition.clone(),
        seek_to_end: to == Seek::End,
        target_timestamp: body.timestamp,
        partitions_updated: 0,
    };
    let partitions_updated = door.seek(scope, to).await?;
    Ok(Json(SeekAnswer {
        partitions_updated,
        ..answer
    }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionBody {
    subscription_timestamp: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubscriptionAnswer {
    success: bool,
    consumer_group: String,
    new_timestamp: String,
    /// Queues that know the group.
    rows_updated: u64,
}

/// Sets where a group starts in partitions that it has not read yet.
#[utoipa::path(
    post, path = "/api/v1/consumer-groups/{group}/subscription", tag = "queue",
    params(("group" = String, Path)),
    request_body = SubscriptionBody,
    responses(
        (status = 200, description = "In how many queues the group is known", body = SubscriptionAnswer),
        BadField,
    )
)]
pub(super) async fn subscribe(
    State(door): Door,
    PathNames(group): PathNames<String>,
    LimitedBody(body): LimitedBody,
) -> Answer<SubscriptionAnswer> {
    name::check("group", &group, door.limits().max_name)?;
    let body: SubscriptionBody = json(&body)?;
    let begin = time("subscriptionTimestamp", &body.subscription_timestamp)?;
    let rows_updated = door.subscribe(group.clone(), begin).await?;
    Ok(Json(SubscriptionAnswer {
        success: true,
        consumer_group: group,
        new_timestamp: body.subscription_timestamp,
        rows_updated,
    }))
}
