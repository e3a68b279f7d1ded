//! The routes by which Queen's servers share state, as far as they mean something here.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use wakeline_web::{LimitedBody, json as parse};

use super::{
    Answer, Door,
    refusals::{BadField, StoreUnreachable},
};
use crate::{name, service::Queue};

async fn state(door: &Queue) -> Answer<Value> {
    let modes = door.modes().await?;
    let bus_status = door.bus().status();
    Ok(Json(json!({
        "enabled": bus_status.kind != "memory",
        "maintenance_mode": modes.push_paused,
        "pop_maintenance_mode": modes.pop_paused,
        "reason": format!("bus: {}, {}", bus_status.kind, bus_status.mode.name()),
    })))
}

/// What is paused on all nodes, and how the nodes reach one another.
#[utoipa::path(
    get, path = "/api/v1/system/shared-state", tag = "queue",
    responses((status = 200, description = "The state", body = Object), StoreUnreachable)
)]
pub(super) async fn shared_state(State(door): Door) -> Answer<Value> {
    state(&door).await
}

/// The same as `/api/v1/system/shared-state`.
#[utoipa::path(
    get, path = "/internal/api/shared-state/stats", tag = "queue",
    responses((status = 200, description = "The state", body = Object), StoreUnreachable)
)]
pub(super) async fn shared_state_stats(State(door): Door) -> Answer<Value> {
    state(&door).await
}

/// The same as `/api/v1/system/shared-state`.
#[utoipa::path(
    get, path = "/internal/api/inter-instance/stats", tag = "queue",
    responses((status = 200, description = "The state", body = Object), StoreUnreachable)
)]
pub(super) async fn inter_instance_stats(State(door): Door) -> Answer<Value> {
    state(&door).await
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct NotifyBody {
    queue: String,
    #[serde(default)]
    partition: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NotifyAnswer {
    status: &'static str,
}

/// Makes the pops that wait for a queue check it again. Nothing depends on this: pushes wake pops by
/// themselves.
#[utoipa::path(
    post, path = "/internal/api/notify", tag = "queue", request_body = NotifyBody,
    responses((status = 200, description = "They check again", body = NotifyAnswer), BadField)
)]
pub(super) async fn notify(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<NotifyAnswer> {
    let notice: NotifyBody = parse(&body)?;
    let queue = notice.queue;
    let most = door.limits().max_name;
    name::check("queue", &queue, most)?;
    name::check_given("partition", notice.partition.as_deref(), most)?;
    door.notify(&queue, notice.partition).await?;
    Ok(Json(NotifyAnswer { status: "ok" }))
}
