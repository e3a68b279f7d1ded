//! What the stores tell the metrics: statements by kind, batch sizes, commit times.

use std::time::Duration;

pub(crate) fn statements(store: &'static str, kind: &'static str, count: u64) {
    metrics::counter!("wakeline_statements_total", "store" => store, "kind" => kind)
        .increment(count);
}

#[allow(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
pub(crate) fn batch(store: &'static str, kind: &'static str, size: usize, took: Duration) {
    metrics::histogram!("wakeline_batch_size", "store" => store, "kind" => kind)
        .record(size as f64);
    metrics::histogram!("wakeline_commit_seconds", "store" => store, "kind" => kind)
        .record(took.as_secs_f64());
}
