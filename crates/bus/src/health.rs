//! Whether the bus works, by the canaries that come back.

use std::{
    mem,
    time::{Duration, Instant},
};

use crate::bus::BusMode;

#[derive(Debug)]
pub(crate) struct Health {
    pub(crate) mode: BusMode,
    /// The number of the last canary, and when it was sent.
    pub(crate) canary_sent: Option<(u64, Instant)>,
    pub(crate) canary_received: Option<Instant>,
    pub(crate) listening_since: Option<Instant>,
    pub(crate) round_trip: Option<Duration>,
    pub(crate) connects: u64,
    pub(crate) has_warned: bool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            // Until the first canary is back, messages may not arrive.
            mode: BusMode::Polling,
            canary_sent: None,
            canary_received: None,
            listening_since: None,
            round_trip: None,
            connects: 0,
            has_warned: false,
        }
    }
}

impl Health {
    pub(crate) fn connected(&mut self) {
        self.connects += 1;
        self.listening_since = Some(Instant::now());
        self.canary_received = None;
    }

    /// Returns whether the mode has changed.
    pub(crate) fn disconnected(&mut self) -> bool {
        self.listening_since = None;
        self.round_trip = None;
        mem::replace(&mut self.mode, BusMode::Polling) != BusMode::Polling
    }

    pub(crate) fn next_canary(&mut self) -> u64 {
        let number = self.canary_sent.map_or(0, |(number, _)| number) + 1;
        self.canary_sent = Some((number, Instant::now()));
        number
    }
}
