//! The routes, in Queen's shapes.

mod ack;
mod pop;
mod push;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::service::Queue;

/// All routes of this door.
pub fn router(door: Arc<Queue>) -> OpenApiRouter {
    OpenApiRouter::new()
        .routes(routes!(push::push))
        .routes(routes!(pop::pop_queue))
        .routes(routes!(pop::pop_partition))
        .routes(routes!(ack::ack))
        .with_state(door)
}
