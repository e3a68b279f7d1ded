//! What the database says of itself.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::Value;
use wakeline_web::Problem;

use crate::{
    http::{browse::shown, refusals::Unreachable},
    service::Queue,
};

/// How the database itself is doing.
#[utoipa::path(
    get, path = "/api/v1/analytics/postgres-stats", tag = "queue",
    responses(
        (status = 200, description = "What it says of its tables; nothing with SQLite", body = Object),
        Unreachable,
    )
)]
pub(in crate::http) async fn postgres_stats(
    State(door): State<Arc<Queue>>,
) -> Result<Json<Value>, Problem> {
    let mut stats = door.browse().database_health().await?;
    stats["timestamp"] = shown(door.browse().now_us().await?).into();
    Ok(Json(stats))
}
