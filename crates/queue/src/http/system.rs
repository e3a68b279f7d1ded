//! What Queen's servers tell one another, in as far as it means something here.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use wakeline_web::{LimitedBody, Problem, json as parse};

use super::refusals::{BadField, Unreachable};
use crate::{name, service::Queue};

async fn state(door: &Queue) -> Result<Json<Value>, Problem> {
    let modes = door.modes().await?;
    let bus_status = door.bus().status();
    Ok(Json(json!({
        "enabled": bus_status.kind != "memory",
        "maintenance_mode": modes.push_paused,
        "pop_maintenance_mode": modes.pop_paused,
        "reason": format!("bus: {}, {}", bus_status.kind, bus_status.mode.name()),
    })))
}

/// What holds for all nodes, and how they reach one another.
#[utoipa::path(
    get, path = "/api/v1/system/shared-state", tag = "queue",
    responses(
        (status = 200, description = "The state", body = Object),
        Unreachable,
    )
)]
pub(super) async fn shared_state(State(door): State<Arc<Queue>>) -> Result<Json<Value>, Problem> {
    state(&door).await
}

/// The same as `/api/v1/system/shared-state`.
#[utoipa::path(
    get, path = "/internal/api/shared-state/stats", tag = "queue",
    responses(
        (status = 200, description = "The state", body = Object),
        Unreachable,
    )
)]
pub(super) async fn shared_state_stats(
    State(door): State<Arc<Queue>>,
) -> Result<Json<Value>, Problem> {
    state(&door).await
}

/// The same as `/api/v1/system/shared-state`.
#[utoipa::path(
    get, path = "/internal/api/inter-instance/stats", tag = "queue",
    responses(
        (status = 200, description = "The state", body = Object),
        Unreachable,
    )
)]
pub(super) async fn inter_instance_stats(
    State(door): State<Arc<Queue>>,
) -> Result<Json<Value>, Problem> {
    state(&door).await
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Notice {
    queue: String,
    #[serde(default)]
    partition: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Noticed {
    status: &'static str,
}

/// Makes whoever waits for a queue look again. Nothing depends on it: pushes wake by themselves.
#[utoipa::path(
    post, path = "/internal/api/notify", tag = "queue", request_body = Notice,
    responses(
        (status = 200, description = "They look again", body = Noticed),
        BadField,
        Unreachable,
    )
)]
pub(super) async fn notify(
    State(door): State<Arc<Queue>>,
    LimitedBody(body): LimitedBody,
) -> Result<Json<Noticed>, Problem> {
    let notice: Notice = parse(&body)?;
    let queue = notice.queue;
    let most = door.limits().max_name;
    name::check("queue", &queue, most)?;
    if let Some(partition) = &notice.partition {
        name::check("partition", partition, most)?;
    }
    door.notify(&queue, notice.partition).await?;
    Ok(Json(Noticed { status: "ok" }))
}
