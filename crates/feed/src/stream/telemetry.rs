//! The numbers of a stream: in the metrics as they change, because a stream may last for days, and
//! in the log when it ends.

use std::sync::Arc;

use tokio::time::Instant;

use crate::pages::Page;

/// Why the server ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Drain,
    /// More facts waited for it than `feeds.waitlistCap`.
    Overrun,
    SlowReader,
    /// It has reached `feeds.maxAge`.
    Age,
}

impl EndReason {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Overrun => "overrun",
            Self::SlowReader => "slow-reader",
            Self::Age => "age",
        }
    }

    /// Whether a limit ended it.
    fn is_drop(self) -> bool {
        matches!(self, Self::Overrun | Self::SlowReader)
    }
}

#[derive(Debug)]
pub struct Telemetry {
    feed: Arc<str>,
    connection: u64,
    began: Instant,
    /// A page with its SYNC is two; a sign of life is none.
    pub frames: u64,
    pub pages: u64,
    pub references: u64,
    pub cycles: u64,
    pub syncs: u64,
    /// Cycles that followed another at once because facts had come meanwhile.
    pub restarts: u64,
    pub waitlist_peak: usize,
    pub seconds_to_sync: Option<f64>,
    pub ending: Option<EndReason>,
}

impl Telemetry {
    pub(super) fn new(feed: Arc<str>) -> Self {
        metrics::gauge!("wakeline_feed_streams").increment(1.0);
        Self {
            feed,
            connection: rand::random(),
            began: Instant::now(),
            frames: 0,
            pages: 0,
            references: 0,
            cycles: 0,
            syncs: 0,
            restarts: 0,
            waitlist_peak: 0,
            seconds_to_sync: None,
            ending: None,
        }
    }

    pub(super) fn frames(&mut self, count: u64) {
        self.frames += count;
        metrics::counter!("wakeline_feed_frames_total").increment(count);
    }

    pub(super) fn page(&mut self, page: &Page) {
        let references = page.references.len() as u64;
        self.pages += 1;
        self.references += references;
        metrics::counter!("wakeline_feed_pages_total").increment(1);
        metrics::counter!("wakeline_feed_references_total").increment(references);
    }

    pub(super) fn cycle(&mut self) {
        self.cycles += 1;
        metrics::counter!("wakeline_feed_cycles_total").increment(1);
    }

    pub(super) fn restart(&mut self) {
        self.restarts += 1;
        metrics::counter!("wakeline_feed_restarts_total").increment(1);
    }

    pub(super) fn synced(&mut self) {
        self.syncs += 1;
        metrics::counter!("wakeline_feed_syncs_total").increment(1);
        if self.seconds_to_sync.is_none() {
            let seconds = self.began.elapsed().as_secs_f64();
            self.seconds_to_sync = Some(seconds);
            metrics::histogram!("wakeline_feed_time_to_sync_seconds").record(seconds);
        }
    }

    pub(super) fn report(&self) {
        metrics::gauge!("wakeline_feed_streams").decrement(1.0);
        metrics::histogram!("wakeline_feed_waitlist_peak").record(self.waitlist_peak as f64);
        if let Some(ending) = self.ending.filter(|ending| ending.is_drop()) {
            metrics::counter!("wakeline_feed_dropped_total", "reason" => ending.name())
                .increment(1);
            tracing::warn!(
                feed = %self.feed,
                connection = format!("{:016x}", self.connection),
                reason = ending.name(),
                waitlist = self.waitlist_peak,
                "a stream was closed at a limit"
            );
        }
        tracing::debug!(
            feed = %self.feed,
            connection = format!("{:016x}", self.connection),
            frames = self.frames,
            pages = self.pages,
            references = self.references,
            cycles = self.cycles,
            syncs = self.syncs,
            restarts = self.restarts,
            waitlist_peak = self.waitlist_peak,
            seconds_to_sync = self.seconds_to_sync,
            ending = self.ending.map_or("client", EndReason::name),
            "a stream ended"
        );
    }
}
