//! The other processes on the bus, known by their canaries.
//!
//! A process is alone when it has received its own canary on this connection for more than
//! [`ANSWER`] and knows no other process. It sends no wakes then. When another one appears, it sends
//! "everything of every door" once, so that the newcomer rechecks for the wakes that were not sent.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long the others have to answer a greeting. After an outage of the bus all reconnect within the
/// longest pause between two attempts; no process should count itself alone before that.
const ANSWER: Duration = Duration::from_secs(6);
/// A process that sends no canary for so many of its intervals is gone.
const SILENT: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// When each process counts as gone.
    gone_at: HashMap<u64, Instant>,
    /// When the first own canary came over this connection.
    own_canary: Option<Instant>,
}

impl Peers {
    /// The connection is new: the others are asked for a canary.
    pub(crate) fn greet(&mut self) {
        self.own_canary = None;
    }

    pub(crate) fn is_greeting(&self) -> bool {
        self.own_canary.is_none()
    }

    pub(crate) fn own_canary_received(&mut self) {
        self.own_canary.get_or_insert_with(Instant::now);
    }

    /// Returns whether the process is new.
    pub(crate) fn canary_received(&mut self, peer: u64, every: Duration) -> bool {
        let now = Instant::now();
        self.gone_at.retain(|_, gone_at| *gone_at > now);
        self.gone_at.insert(peer, now + every * SILENT).is_none()
    }

    pub(crate) fn are_none(&mut self) -> bool {
        let now = Instant::now();
        if self.gone_at.values().any(|gone_at| *gone_at > now) {
            return false;
        }
        self.own_canary.is_some_and(|since| now - since > ANSWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_alone_before_the_others_had_time_to_answer() {
        let mut peers = Peers::default();
        assert!(!peers.are_none());
        peers.own_canary_received();
        assert!(!peers.are_none());
        peers.own_canary = Instant::now().checked_sub(ANSWER * 2);
        assert!(peers.are_none());
        peers.greet();
        assert!(!peers.are_none());
    }

    #[test]
    fn a_peer_is_new_once_and_again_after_it_was_silent() {
        let mut peers = Peers {
            own_canary: Instant::now().checked_sub(ANSWER * 2),
            ..Peers::default()
        };
        assert!(peers.canary_received(7, Duration::from_secs(60)));
        assert!(!peers.canary_received(7, Duration::from_secs(60)));
        assert!(!peers.are_none());
        peers.gone_at.insert(7, Instant::now());
        assert!(peers.are_none());
        assert!(peers.canary_received(7, Duration::from_secs(60)));
    }
}
