//! The canary: a message that this process sends to itself over the bus.

use std::{mem, sync::Arc, time::Instant};

use tokio::time::sleep;

use super::{Bus, BusMode, Remote};
use crate::message::{self, Message};

impl Bus {
    /// Sends the canary for ever.
    pub(super) async fn send_canaries(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        loop {
            tokio::select! {
                () = sleep(remote.canary) => {}
                () = remote.canary_now.notified() => {}
            }
            let canary = Message {
                from: remote.node,
                canary: Some(remote.health().next_canary()),
                every: Some(message::milliseconds(remote.canary)),
                hello: remote.peers().is_greeting(),
                ..Message::default()
            };
            if let Err(error) = remote.send(vec![message::text(&canary)]).await {
                tracing::debug!(%error, "the canary could not be sent");
            }
        }
    }

    /// Switches to polling when the canary is missing. A task of its own, because the task that sends
    /// canaries may hang in a send.
    pub(super) async fn watch_canary(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        loop {
            sleep(remote.canary).await;
            if remote.is_canary_missing() && remote.start_polling() {
                self.request_recheck();
            }
        }
    }
}

impl Remote {
    /// Without a connection none is expected.
    fn is_canary_missing(&self) -> bool {
        let health = self.health();
        health
            .listening_since
            .map(|since| health.canary_received.map_or(since, |last| last.max(since)))
            .is_some_and(|last| last.elapsed() > self.canary.mul_f64(1.5))
    }

    pub(super) fn canary_received(&self, number: u64) {
        let mut health = self.health();
        let now = Instant::now();
        health.canary_received = Some(now);
        health.has_warned = false;
        if let Some((_, sent)) = health.canary_sent.filter(|(last, _)| *last == number) {
            health.round_trip = Some(now - sent);
        }
        if health.mode != BusMode::Live && health.listening_since.is_some() {
            health.mode = BusMode::Live;
            tracing::info!(bus = self.transport.kind(), "the bus is live");
        }
    }

    /// Returns whether the mode has changed.
    fn start_polling(&self) -> bool {
        let mut health = self.health();
        health.round_trip = None;
        if !health.has_warned {
            health.has_warned = true;
            tracing::warn!(
                bus = self.transport.kind(),
                "the bus is subscribed, but nothing that is sent comes back; the doors poll the \
                 store at the short interval. {}",
                self.transport.hint_when_silent()
            );
        }
        mem::replace(&mut health.mode, BusMode::Polling) != BusMode::Polling
    }
}
