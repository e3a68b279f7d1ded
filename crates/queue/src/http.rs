//! The routes, in Queen's shapes.

mod ack;
mod pop;
mod push;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};
use wakeline_web::{Need, need};

use crate::service::Queue;

/// All routes of this door.
pub fn router(door: Arc<Queue>) -> OpenApiRouter {
    let producing = OpenApiRouter::new().routes(routes!(push::push));
    let consuming = OpenApiRouter::new()
        .routes(routes!(pop::pop_queue))
        .routes(routes!(pop::pop_partition))
        .routes(routes!(ack::ack));
    need(producing, Need::Write)
        .merge(need(consuming, Need::Consume))
        .with_state(door)
}
