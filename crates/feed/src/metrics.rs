//! The door's metrics: their names and descriptions, and the functions that count them.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// For `/metrics`.
pub fn describe() {
    describe_counter!(
        "wakeline_feed_facts_saved_total",
        "New facts that were saved"
    );
    describe_gauge!("wakeline_feed_streams", "Open streams");
    describe_counter!(
        "wakeline_feed_frames_total",
        "Frames sent to streams: pages, SYNC and denials"
    );
    describe_counter!("wakeline_feed_pages_total", "Pages sent to streams");
    describe_counter!(
        "wakeline_feed_references_total",
        "References to facts in the pages sent to streams"
    );
    describe_counter!(
        "wakeline_feed_cycles_total",
        "Times that a stream read what is new"
    );
    describe_counter!("wakeline_feed_syncs_total", "SYNC frames sent to streams");
    describe_counter!(
        "wakeline_feed_restarts_total",
        "Cycles that began at once because facts had come during the last one"
    );
    describe_counter!(
        "wakeline_feed_dropped_total",
        "Streams closed at a limit, by reason"
    );
    describe_histogram!(
        "wakeline_feed_waitlist_peak",
        "Largest number of facts that waited for a stream, observed at its end"
    );
    describe_histogram!(
        "wakeline_feed_time_to_sync_seconds",
        "From the opening of a stream to its first SYNC"
    );
}

pub(crate) fn facts_saved(count: u64) {
    metrics::counter!("wakeline_feed_facts_saved_total").increment(count);
}

pub(crate) fn stream_opened() {
    metrics::gauge!("wakeline_feed_streams").increment(1.0);
}

pub(crate) fn frames(count: u64) {
    metrics::counter!("wakeline_feed_frames_total").increment(count);
}

pub(crate) fn page(references: u64) {
    metrics::counter!("wakeline_feed_pages_total").increment(1);
    metrics::counter!("wakeline_feed_references_total").increment(references);
}

pub(crate) fn cycle() {
    metrics::counter!("wakeline_feed_cycles_total").increment(1);
}

pub(crate) fn restart() {
    metrics::counter!("wakeline_feed_restarts_total").increment(1);
}

pub(crate) fn sync() {
    metrics::counter!("wakeline_feed_syncs_total").increment(1);
}

pub(crate) fn first_sync(seconds: f64) {
    metrics::histogram!("wakeline_feed_time_to_sync_seconds").record(seconds);
}

pub(crate) fn stream_ended(waitlist_peak: usize) {
    metrics::gauge!("wakeline_feed_streams").decrement(1.0);
    metrics::histogram!("wakeline_feed_waitlist_peak").record(waitlist_peak as f64);
}

pub(crate) fn dropped(reason: &'static str) {
    metrics::counter!("wakeline_feed_dropped_total", "reason" => reason).increment(1);
}
