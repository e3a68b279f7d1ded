//! `POST /api/v1/configure` and `DELETE /api/v1/resources/queues/{queue}`

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;
use wakeline_web::{LimitedBody, Problem, json};

use super::{
    Answer, Door,
    query::PathNames,
    refusals::{BadField, StoreUnreachable},
};
use crate::{
    name,
    options::{self, OptionChanges},
    queue_admin::QueueChange,
    seal::{FILE_NAME, Fingerprint},
};

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ConfigureBody {
    queue: String,
    /// By default the part of the queue's name before the first dot.
    namespace: Option<String>,
    /// By default the part of the queue's name after the first dot.
    task: Option<String>,
    /// `leaseTime`, `retryLimit`, `retryDelay`, `deadLetterQueue`, `dlqAfterMaxRetries`,
    /// `priority`, `delayedProcessing`, `windowBuffer`, `maxSize`, `ttl`, `maxWaitTimeSeconds`,
    /// `retentionEnabled`, `retentionSeconds`, `completedRetentionSeconds`, `encryptionEnabled`.
    /// An option that is not named keeps its value; null restores its default.
    options: Option<Map<String, Value>>,
    /// `merge` (the default), or `replace`: options that are not named get their defaults.
    mode: Option<String>,
}

/// Whether options that are not named get their defaults.
const MODES: [(&str, bool); 2] = [("merge", false), ("replace", true)];

fn resets_others(mode: Option<&str>) -> Result<bool, Problem> {
    let Some(mode) = mode else {
        return Ok(false);
    };
    let known = MODES.into_iter().find(|(name, _)| *name == mode);
    known
        .map(|(_, resets_others)| resets_others)
        .ok_or_else(|| Problem::invalid("mode", "must be merge or replace"))
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigureAnswer {
    configured: bool,
    queue: String,
    namespace: String,
    task: String,
    queue_id: Uuid,
    /// Always null: partitions appear with their first message.
    partition_id: Option<Uuid>,
    storage: &'static str,
    options: Map<String, Value>,
    /// What somebody has to do now, such as to back up a key that the server has made.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

fn notice(key: Fingerprint) -> String {
    format!(
        "the server made the key {key} for encrypted queues, in the file {FILE_NAME} of its data \
         directory: back it up apart from the database, because without it their messages cannot be read"
    )
}

/// Creates a queue or changes its options.
#[utoipa::path(
    post, path = "/api/v1/configure", tag = "queue",
    request_body = ConfigureBody,
    responses(
        (status = 200, description = "The queue with all its options", body = ConfigureAnswer),
        BadField,
    )
)]
pub(super) async fn configure(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<ConfigureAnswer> {
    let body: ConfigureBody = json(&body)?;
    let most = door.limits().max_name;
    name::check("queue", &body.queue, most)?;
    let not_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (namespace, task) = (not_empty(body.namespace), not_empty(body.task));
    name::check_given("namespace", namespace.as_deref(), most)?;
    name::check_given("task", task.as_deref(), most)?;
    let resets_others = resets_others(body.mode.as_deref())?;
    let change = QueueChange {
        queue: body.queue.clone(),
        namespace,
        task,
        options: OptionChanges::read(body.options.unwrap_or_default(), resets_others)?,
    };
    let changed = door.change(change).await?;
    let (configured, lease) = (changed.configured, door.limits().lease);
    Ok(Json(ConfigureAnswer {
        configured: true,
        queue: body.queue,
        namespace: configured.namespace,
        task: configured.task,
        queue_id: configured.queue_id,
        partition_id: None,
        storage: "segments",
        options: options::effective(&changed.given, changed.options.lease_ms, lease),
        notice: changed.made_key.map(notice),
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeleteAnswer {
    queue: String,
    deleted: bool,
    existed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

/// Deletes a queue with all its messages. Its name can be used again at once.
#[utoipa::path(
    delete, path = "/api/v1/resources/queues/{queue}", tag = "queue",
    params(("queue" = String, Path)),
    responses(
        (status = 200, description = "`existed` says whether there was one", body = DeleteAnswer),
        StoreUnreachable,
    )
)]
pub(super) async fn delete_queue(
    State(door): Door,
    PathNames(queue): PathNames<String>,
) -> Answer<DeleteAnswer> {
    name::check("queue", &queue, door.limits().max_name)?;
    let existed = door.delete_queue(queue.clone()).await?;
    Ok(Json(DeleteAnswer {
        queue,
        deleted: existed,
        existed,
        message: (!existed).then_some("Queue not found, nothing was deleted"),
    }))
}
