//! Held pops by node.

use std::collections::BTreeSet;

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::Params;

use super::range::{Range, RangeQuery, rounded};
use crate::http::{Answer, Door, refusals::BadParameter, second_text};

/// How many pops were held, by queue, node and time step. `/v1/waits` shows those that are held now.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-parked-replicas", tag = "queue",
    params(RangeQuery),
    responses(
        (status = 200, description = "Averages of samples of every ten seconds; kept for seven days", body = Object),
        BadParameter,
    )
)]
pub(in crate::http) async fn parked_replicas(State(door): Door, params: Params) -> Answer<Value> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let held = door.held_by_node(range.span(), &range.queue).await?;
    let nodes: BTreeSet<&(String, i64)> =
        held.iter().filter_map(|held| held.node.as_ref()).collect();
    let replicas = nodes
        .iter()
        .map(|(hostname, port)| json!({"hostname": hostname, "workerId": port}));
    let series = held.iter().map(|held| {
        let (hostname, port) = held.node.clone().unwrap_or_default();
        json!({
            "bucket": second_text(held.bucket_us), "queueName": held.queue, "hostname": hostname,
            "workerId": port, "parkedCount": rounded(held.held),
        })
    });
    Ok(Json(range.answer(json!({
        "series": series.collect::<Vec<_>>(), "replicas": replicas.collect::<Vec<_>>(),
    }))))
}
