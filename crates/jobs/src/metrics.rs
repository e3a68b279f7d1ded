//! What the door's metrics mean.

/// For `/metrics`.
pub fn describe() {
    metrics::describe_counter!(
        "wakeline_jobs_dispatches_total",
        "Requests that were dispatched to providers"
    );
    metrics::describe_gauge!(
        "wakeline_jobs_sockets",
        "Socket.IO clients connected to this node"
    );
}
