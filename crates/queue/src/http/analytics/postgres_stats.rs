//! What the database says of itself.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::Value;
use wakeline_web::Problem;

use crate::{
    error::Error,
    http::{browse::shown, refusals::Unreachable},
    service::Queue,
    store::browse::tallies,
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
    let store = &**door.store();
    let stats = async {
        let mut stats = store.health().await?;
        stats["timestamp"] = shown(tallies::now(store).await?).into();
        Ok::<_, Error>(stats)
    };
    Ok(Json(stats.await?))
}
