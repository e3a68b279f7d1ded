//! The database's own statistics.

use axum::{Json, extract::State};
use serde_json::Value;

use crate::http::{Answer, Door, refusals::StoreUnreachable, short_time_text};

/// The database's own statistics.
#[utoipa::path(
    get, path = "/api/v1/analytics/postgres-stats", tag = "queue",
    responses(
        (status = 200, description = "Statistics of Wakeline's tables; nothing with SQLite", body = Object),
        StoreUnreachable,
    )
)]
pub(in crate::http) async fn postgres_stats(State(door): Door) -> Answer<Value> {
    let mut stats = door.database_health().await?;
    stats["timestamp"] = short_time_text(door.now_us().await?).into();
    Ok(Json(stats))
}
