//! The database's own statistics.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::Value;
use wakeline_web::Problem;

use crate::{
    http::{listing::short_time_text, refusals::StoreUnreachable},
    service::Queue,
};

/// The database's own statistics.
#[utoipa::path(
    get, path = "/api/v1/analytics/postgres-stats", tag = "queue",
    responses(
        (status = 200, description = "Statistics of Wakeline's tables; nothing with SQLite", body = Object),
        StoreUnreachable,
    )
)]
pub(in crate::http) async fn postgres_stats(
    State(door): State<Arc<Queue>>,
) -> Result<Json<Value>, Problem> {
    let mut stats = door.database_health().await?;
    stats["timestamp"] = short_time_text(door.now_us().await?).into();
    Ok(Json(stats))
}
