//! What the door's metrics mean.

/// For `/metrics`.
pub fn describe() {
    metrics::describe_counter!(
        "wakeline_queue_swept_total",
        "Messages removed by the sweep: consumed, too old, or dead for too long"
    );
}
