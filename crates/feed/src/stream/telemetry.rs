//! The numbers of a stream: in the metrics as they change, because a stream may last for days, and
//! in the log when it ends.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{metrics, pages::Page};

/// Why the server ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Drain,
    /// More facts waited for it than `feeds.waitlistCap`.
    Overrun,
    SlowReader,
    /// The stream has reached `feeds.maxAge`.
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
        metrics::stream_opened();
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
        metrics::frames(count);
    }

    pub(super) fn page(&mut self, page: &Page) {
        let references = page.references.len() as u64;
        self.pages += 1;
        self.references += references;
        metrics::page(references);
    }

    pub(super) fn cycle(&mut self) {
        self.cycles += 1;
        metrics::cycle();
    }

    pub(super) fn restart(&mut self) {
        self.restarts += 1;
        metrics::restart();
    }

    pub(super) fn synced(&mut self) {
        self.syncs += 1;
        metrics::sync();
        if self.seconds_to_sync.is_none() {
            let seconds = self.began.elapsed().as_secs_f64();
            self.seconds_to_sync = Some(seconds);
            metrics::first_sync(seconds);
        }
    }

    pub(super) fn report(&self) {
        metrics::stream_ended(self.waitlist_peak);
        if let Some(ending) = self.ending.filter(|ending| ending.is_drop()) {
            metrics::dropped(ending.name());
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
