//! How many pops were held, by node.

use std::{collections::BTreeSet, sync::Arc};

use axum::{Json, extract::State};
use serde_json::{Value, json};
use wakeline_web::{Params, Problem};

use super::range::{Range, bucket, rounded};
use crate::{
    http::{
        refusals::{BadParameter, Unreachable},
        times::TimesOfQueue,
    },
    service::Queue,
};

/// How many pops were held, by queue, node and step; who waits now is told by `/v1/waits`.
#[utoipa::path(
    get, path = "/api/v1/analytics/queue-parked-replicas", tag = "queue",
    params(TimesOfQueue),
    responses(
        (status = 200, description = "Averages of what was sampled every ten seconds; kept for seven days", body = Object),
        BadParameter,
        Unreachable,
    )
)]
pub(in crate::http) async fn parked_replicas(
    State(door): State<Arc<Queue>>,
    params: Params,
) -> Result<Json<Value>, Problem> {
    let range = Range::read(&door, &params, Range::HOUR).await?;
    let browse = door.browse();
    let held = browse.held_by_node(range.span(), &range.queue).await?;
    let nodes: BTreeSet<&(String, i64)> =
        held.iter().filter_map(|held| held.node.as_ref()).collect();
    let replicas = nodes
        .iter()
        .map(|(hostname, port)| json!({"hostname": hostname, "workerId": port}));
    let series = held.iter().map(|held| {
        let (hostname, port) = held.node.clone().unwrap_or_default();
        json!({
            "bucket": bucket(held.step_us), "queueName": held.queue, "hostname": hostname,
            "workerId": port, "parkedCount": rounded(held.held),
        })
    });
    Ok(Json(range.answer(json!({
        "series": series.collect::<Vec<_>>(), "replicas": replicas.collect::<Vec<_>>(),
    }))))
}
