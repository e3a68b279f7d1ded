//! `/api/v1/system/maintenance`: pauses pushes and pops on all nodes.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wakeline_web::{LimitedBody, json};

use super::{
    Answer, Door,
    refusals::{BadField, StoreUnreachable},
};
use crate::queue_admin::PauseModes;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ModeBody {
    enabled: bool,
}

/// Nothing is buffered here: a push is stored or refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModesAnswer {
    maintenance_mode: bool,
    pop_maintenance_mode: bool,
    buffered_messages: u64,
    buffer_healthy: bool,
    buffer_stats: BufferStats,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BufferStats {
    pending_count: u64,
    failed_count: u64,
    db_healthy: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PopModeAnswer {
    pop_maintenance_mode: bool,
    message: &'static str,
}

fn answer(modes: PauseModes, message: Option<&'static str>) -> Json<ModesAnswer> {
    Json(ModesAnswer {
        maintenance_mode: modes.push_paused,
        pop_maintenance_mode: modes.pop_paused,
        buffered_messages: 0,
        buffer_healthy: true,
        buffer_stats: BufferStats {
            pending_count: 0,
            failed_count: 0,
            db_healthy: true,
        },
        message,
    })
}

fn pop_answer(modes: PauseModes) -> Json<PopModeAnswer> {
    Json(PopModeAnswer {
        pop_maintenance_mode: modes.pop_paused,
        message: if modes.pop_paused {
            "Pop maintenance mode is ON. Pops find nothing; held pops keep waiting."
        } else {
            "Pop maintenance mode is OFF. Normal operation."
        },
    })
}

/// Whether pushes and pops are paused.
#[utoipa::path(
    get, path = "/api/v1/system/maintenance", tag = "queue",
    responses((status = 200, description = "What is paused", body = ModesAnswer), StoreUnreachable)
)]
pub(super) async fn modes(State(door): Door) -> Answer<ModesAnswer> {
    Ok(answer(door.modes().await?, None))
}

/// Pauses or resumes pushes. While paused, they are refused with 503.
#[utoipa::path(
    post, path = "/api/v1/system/maintenance", tag = "queue",
    request_body = ModeBody,
    responses((status = 200, description = "What is paused now", body = ModesAnswer), BadField)
)]
pub(super) async fn pause_pushes(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<ModesAnswer> {
    let body: ModeBody = json(&body)?;
    let modes = door.pause_pushes(body.enabled).await?;
    let message = if body.enabled {
        "Maintenance mode ENABLED. Pushes are refused with 503 until it is disabled."
    } else {
        "Maintenance mode DISABLED. Normal operation resumed."
    };
    Ok(answer(modes, Some(message)))
}

/// Whether pops are paused.
#[utoipa::path(
    get, path = "/api/v1/system/maintenance/pop", tag = "queue",
    responses(
        (status = 200, description = "Whether they are", body = PopModeAnswer),
        StoreUnreachable,
    )
)]
pub(super) async fn pop_mode(State(door): Door) -> Answer<PopModeAnswer> {
    Ok(pop_answer(door.modes().await?))
}

/// Pauses or resumes pops. While paused, they find nothing; held pops keep waiting.
#[utoipa::path(
    post, path = "/api/v1/system/maintenance/pop", tag = "queue",
    request_body = ModeBody,
    responses(
        (status = 200, description = "Whether they are paused now", body = PopModeAnswer),
        BadField,
    )
)]
pub(super) async fn pause_pops(
    State(door): Door,
    LimitedBody(body): LimitedBody,
) -> Answer<PopModeAnswer> {
    let body: ModeBody = json(&body)?;
    Ok(pop_answer(door.pause_pops(body.enabled).await?))
}
