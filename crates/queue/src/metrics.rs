//! The door's metrics: their names and descriptions, and the functions that count them. What Queen's
//! dashboard shows is counted in `counters.rs`.

/// For `/metrics`.
pub fn describe() {
    metrics::describe_counter!(
        "wakeline_queue_swept_total",
        "Messages removed by the sweep: consumed, too old, or dead for too long"
    );
}

pub(crate) fn swept(messages: u64) {
    metrics::counter!("wakeline_queue_swept_total").increment(messages);
}
