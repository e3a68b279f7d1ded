//! `/api/v1/consumer-groups`: which groups read what, and how far behind they are.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::Params;

use super::{
    Answer, Door,
    listing::{MAX_ROWS, seconds_since},
    query::{PathNames, number, query},
    refusals::{BadParameter, StoreUnreachable},
    short_time_text, time_text,
};
use crate::{
    browse::{GroupRow, Reader},
    id, name,
};

/// Lags of an answer at most.
const MAX_LAGGING: i64 = 1_000;
const DEFAULT_LAG_SECONDS: i64 = 3_600;
const MAX_LAG_SECONDS: i64 = 1_000_000_000;

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GroupItem {
    name: String,
    queue_name: String,
    topics: Vec<String>,
    /// `Stable`: the group has consumed everything. `Consuming`: not everything, and some of it is
    /// leased. `Lagging`: not everything, and none of it is leased.
    state: &'static str,
    /// Consumers: leases, and pops that the node that answers holds.
    members: i64,
    /// Partitions that the group reads.
    partition_cursors: i64,
    total_lag: i64,
    partitions_with_lag: i64,
    /// Seconds that the group's oldest message has waited.
    max_time_lag: i64,
    subscription_mode: String,
    subscription_timestamp: String,
    subscription_created_at: String,
    conflation: bool,
    storage: &'static str,
}

fn item(group: GroupRow, now_us: i64) -> GroupItem {
    GroupItem {
        state: match (group.lag, group.leased) {
            (0, _) => "Stable",
            (_, 0) => "Lagging",
            _ => "Consuming",
        },
        topics: vec![group.queue.clone()],
        queue_name: group.queue,
        name: group.name,
        members: group.leases + group.held_pops,
        partition_cursors: group.cursors,
        total_lag: group.lag,
        partitions_with_lag: group.lagging,
        max_time_lag: seconds_since(now_us, group.oldest_us),
        subscription_mode: group.mode,
        subscription_timestamp: time_text(group.begin_us.unwrap_or(0)),
        subscription_created_at: time_text(group.created_us),
        conflation: false,
        storage: "segments",
    }
}

/// All consumer groups, once per queue; 10000 at most.
#[utoipa::path(
    get, path = "/api/v1/consumer-groups", tag = "queue",
    responses((status = 200, description = "The groups", body = Vec<GroupItem>), StoreUnreachable)
)]
pub(super) async fn list(State(door): Door) -> Answer<Vec<GroupItem>> {
    let now_us = door.now_us().await?;
    let groups = door.groups(MAX_ROWS).await?.into_iter();
    Ok(Json(groups.map(|group| item(group, now_us)).collect()))
}

/// A consumer group in the partitions of its queues; 10000 at most. For an unknown group: `{}`.
#[utoipa::path(
    get, path = "/api/v1/consumer-groups/{group}", tag = "queue",
    params(("group" = String, Path)),
    responses(
        (status = 200, description = "By queue, its partitions", body = Object),
        StoreUnreachable,
    )
)]
pub(super) async fn one(State(door): Door, PathNames(group): PathNames<String>) -> Answer<Value> {
    name::check("group", &group, door.limits().max_name)?;
    let now_us = door.now_us().await?;
    let found = door.group_readers(&group, None, MAX_ROWS).await?;
    let mut queues: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for reader in found {
        let partition = json!({
            "partition": reader.partition,
            "workerId": reader.lease.map(|lease| lease.id),
            "leaseActive": reader.lease.is_some(),
            "leaseExpiresAt": reader.lease.map(|lease| time_text(lease.until_us)),
            "offsetLag": reader.lag,
            "timeLagSeconds": seconds_since(now_us, reader.oldest_us),
            "totalConsumed": reader.consumed,
            "lastConsumedAt": null,
        });
        queues.entry(reader.queue).or_default().push(partition);
    }
    let answer = |partitions| json!({"conflation": false, "partitions": partitions});
    let queues = queues.into_iter();
    let queues = queues.map(|(queue, partitions)| (queue, answer(partitions)));
    Ok(Json(Value::Object(queues.collect())))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LaggingGroup {
    consumer_group: String,
    queue_name: String,
    partition_name: String,
    partition_id: Uuid,
    worker_id: Option<Uuid>,
    offset_lag: i64,
    time_lag_seconds: i64,
    lag_hours: f64,
    oldest_unconsumed_at: Option<String>,
    last_consumed_at: Option<String>,
}

#[expect(clippy::cast_precision_loss, reason = "hours are for reading")]
fn lagging_row(reader: Reader, now_us: i64) -> LaggingGroup {
    let seconds = seconds_since(now_us, reader.oldest_us);
    LaggingGroup {
        partition_id: id::partition(reader.partition_number),
        consumer_group: reader.group,
        queue_name: reader.queue,
        partition_name: reader.partition,
        worker_id: reader.lease.map(|lease| lease.id),
        offset_lag: reader.lag,
        time_lag_seconds: seconds,
        lag_hours: (seconds as f64 / 36.0).round() / 100.0,
        oldest_unconsumed_at: reader.oldest_us.map(short_time_text),
        last_consumed_at: None,
    }
}

query! {
    struct LagQuery(limits) {
        /// 3600 by default
        min_lag_seconds "minLagSeconds": i64 = number(0..=MAX_LAG_SECONDS),
    }
}

/// Groups whose oldest message in a partition has waited for long, the longest wait first; 1000 at most.
#[utoipa::path(
    get, path = "/api/v1/consumer-groups/lagging", tag = "queue",
    params(LagQuery),
    responses(
        (status = 200, description = "Groups in partitions", body = Vec<LaggingGroup>),
        BadParameter,
    )
)]
pub(super) async fn lagging(State(door): Door, params: Params) -> Answer<Vec<LaggingGroup>> {
    let query = LagQuery::read(&params, door.limits())?;
    let now_us = door.now_us().await?;
    let wait_us = query.min_lag_seconds.unwrap_or(DEFAULT_LAG_SECONDS) * 1_000_000;
    let readers = door.lagging_groups(wait_us, MAX_LAGGING).await?;
    let readers = readers.into_iter();
    Ok(Json(
        readers.map(|reader| lagging_row(reader, now_us)).collect(),
    ))
}

/// Writes this node's counters. Everything else is always computed at the time of the request.
#[utoipa::path(
    post, path = "/api/v1/stats/refresh", tag = "queue",
    responses((status = 200, description = "How much there is", body = Object), StoreUnreachable)
)]
pub(super) async fn refresh(State(door): Door) -> Answer<Value> {
    door.write_counts().await;
    let overview = door.overview().await?;
    Ok(Json(json!({
        "engine": "segments",
        "queuesUpdated": overview.queues,
        "segPartitions": overview.partitions,
        "namespaces": {"namespacesUpdated": overview.namespaces},
        "tasks": {"tasksUpdated": overview.tasks},
        "system": {"systemUpdated": 1},
        "refreshedAt": short_time_text(overview.now_us),
    })))
}
