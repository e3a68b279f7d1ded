//! The metrics of both stores: statements by kind, batch sizes, commit times.

use std::time::Duration;

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// For `/metrics`.
pub fn describe() {
    describe_counter!("wakeline_statements_total", "Statements by store and kind");
    describe_histogram!("wakeline_batch_size", "Operations that shared a commit");
    describe_histogram!(
        "wakeline_commit_seconds",
        "Duration of a batch, its commit included"
    );
    describe_gauge!(
        "wakeline_disk_full",
        "1 while the database's disk is full and what needs more room is refused, else 0"
    );
}

/// When a store is opened, and when it changes.
pub(crate) fn disk_full(store: &'static str, is_full: bool) {
    metrics::gauge!("wakeline_disk_full", "store" => store).set(u8::from(is_full));
}

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
