//! What the door's metrics mean.

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
