//! How well the line works, by what comes back on it.

use std::{
    mem,
    time::{Duration, Instant},
};

use crate::bus::BusMode;

#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) mode: BusMode,
    pub(crate) sent: Option<(u64, Instant)>,
    pub(crate) heard: Option<Instant>,
    pub(crate) listening_since: Option<Instant>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) connects: u64,
    pub(crate) warned: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            // Until the first canary is back nothing is known to arrive.
            mode: BusMode::Polling,
            sent: None,
            heard: None,
            listening_since: None,
            round_trip: None,
            connects: 0,
            warned: false,
        }
    }
}

impl Health {
    pub(crate) fn connected(&mut self) {
        self.connects += 1;
        self.listening_since = Some(Instant::now());
        self.heard = None;
    }

    /// Whether that is news.
    pub(crate) fn disconnected(&mut self) -> bool {
        self.listening_since = None;
        self.round_trip = None;
        mem::replace(&mut self.mode, BusMode::Polling) != BusMode::Polling
    }

    pub(crate) fn next_canary(&mut self) -> u64 {
        let number = self.sent.map_or(0, |(number, _)| number) + 1;
        self.sent = Some((number, Instant::now()));
        number
    }
}
