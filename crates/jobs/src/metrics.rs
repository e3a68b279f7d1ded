//! The door's metrics: their names and descriptions, and the functions that count them.

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

pub(crate) fn dispatch() {
    metrics::counter!("wakeline_jobs_dispatches_total").increment(1);
}

pub(crate) fn sockets(connected: usize) {
    metrics::gauge!("wakeline_jobs_sockets").set(connected as f64);
}
