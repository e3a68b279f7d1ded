//! Who else is on the bus.
//!
//! Every process is heard by its canary. A process that has heard itself, has asked who is there and
//! has heard nobody else is alone, and need not tell anybody anything until somebody appears; whoever
//! appears is told to ask its store once, so that nothing that was not sent to it is lost.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How long the others have to answer a greeting. After an outage of the bus all come back within
/// the longest pause between two attempts; nobody should take itself to be alone before that.
const ANSWER: Duration = Duration::from_secs(6);
/// A process that is silent for so many of its canary intervals is gone.
const SILENT: u32 = 3;

#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// By process: when it counts as gone.
    known: HashMap<u64, Instant>,
    /// Since when this process hears itself on its line.
    heard_myself: Option<Instant>,
}

impl Peers {
    /// The line is new: who is there must be asked again.
    pub(crate) fn greet(&mut self) {
        self.heard_myself = None;
    }

    pub(crate) fn is_greeting(&self) -> bool {
        self.heard_myself.is_none()
    }

    pub(crate) fn heard_myself(&mut self) {
        self.heard_myself.get_or_insert_with(Instant::now);
    }

    /// Another process was heard. Whether that is news.
    pub(crate) fn heard(&mut self, peer: u64, every: Duration) -> bool {
        let now = Instant::now();
        self.known.retain(|_, gone_at| *gone_at > now);
        self.known.insert(peer, now + every * SILENT).is_none()
    }

    pub(crate) fn are_none(&mut self) -> bool {
        let now = Instant::now();
        if self.known.values().any(|gone_at| *gone_at > now) {
            return false;
        }
        self.heard_myself.is_some_and(|since| now - since > ANSWER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_alone_before_the_others_had_time_to_answer() {
        let mut peers = Peers::default();
        assert!(!peers.are_none());
        peers.heard_myself();
        assert!(!peers.are_none());
        peers.heard_myself = Instant::now().checked_sub(ANSWER * 2);
        assert!(peers.are_none());
        peers.greet();
        assert!(!peers.are_none());
    }

    #[test]
    fn a_peer_is_news_once_and_again_after_it_was_silent() {
        let mut peers = Peers {
            heard_myself: Instant::now().checked_sub(ANSWER * 2),
            ..Peers::default()
        };
        assert!(peers.heard(7, Duration::from_secs(60)));
        assert!(!peers.heard(7, Duration::from_secs(60)));
        assert!(!peers.are_none());
        peers.known.insert(7, Instant::now());
        assert!(peers.are_none());
        assert!(peers.heard(7, Duration::from_secs(60)));
    }
}
