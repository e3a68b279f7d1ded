//! The receive loop: gives the wakes of the other processes to this one's engine.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::timeout;
use wakeline_store::postgres::Connector;
use wakeline_wake::Cause;

use super::{Bus, EVERYTHING, Options, Remote, backoff::Backoff};
use crate::{
    message::{DelayedWake, Message},
    postgres::Notifications,
    transport::{Transport, TransportError},
};

/// A server may accept a connection and then not answer.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// After so many canary intervals without a message the connection is replaced: it may have died
/// without being closed. Doubled each time that did not help (a pooler), up to the most.
const SILENT_CANARIES: u32 = 4;
const MOST_SILENT_CANARIES: u32 = 64;

impl Bus {
    /// Runs for ever, on a new connection whenever the last one ends.
    pub(super) async fn receive_loop(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        let bus = remote.transport.kind();
        let mut backoff = Backoff::new();
        let mut silence = remote.canary * SILENT_CANARIES;
        loop {
            match remote.listen().await {
                Ok(mut messages) => {
                    backoff.reset();
                    remote.health().connected();
                    remote.peers().greet();
                    // For the wakes that came while there was no connection.
                    self.request_recheck();
                    remote.canary_now.notify_one();
                    loop {
                        match timeout(silence, messages.next()).await {
                            Ok(Some(text)) => {
                                silence = remote.canary * SILENT_CANARIES;
                                self.handle_message(remote, &text);
                            }
                            Ok(None) => {
                                tracing::warn!(bus, "the bus' connection was cut");
                                break;
                            }
                            Err(_) => {
                                tracing::info!(
                                    bus,
                                    "nothing comes over the bus' connection; it is replaced"
                                );
                                silence = (silence * 2).min(remote.canary * MOST_SILENT_CANARIES);
                                break;
                            }
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, bus, "no connection to the bus; trying again"),
            }
            // Once: as long as there is no connection, the doors recheck at the short interval.
            if remote.health().disconnected() {
                self.request_recheck();
            }
            backoff.pause().await;
        }
    }

    fn handle_message(&self, remote: &Remote, text: &str) {
        let Ok(message) = serde_json::from_str::<Message>(text) else {
            // Not the text: it may be another program's payload.
            tracing::warn!(
                bytes = text.len(),
                "a message on the bus' channel is not of Wakeline; it is ignored"
            );
            return;
        };
        if message.from == remote.node {
            if let Some(number) = message.canary {
                remote.canary_received(number);
                remote.peers().own_canary_received();
            }
            return;
        }
        if message.canary.is_some() {
            let every = message.every.map_or(remote.canary, Duration::from_millis);
            if remote.peers().canary_received(message.from, every) {
                // A new process: this one, while it was alone, has not sent its wakes.
                remote.outbox.put_doors([EVERYTHING.to_owned()]);
            }
            if message.hello {
                remote.canary_now.notify_one();
            }
        }
        metrics::counter!("wakeline_bus_received_total").increment(1);
        for DelayedWake { wake, delay } in message.wakes.iter().map(DelayedWake::from) {
            if delay.is_zero() {
                self.engine.wake(&wake, Cause::Notify);
            } else {
                self.engine.wake_after(wake, delay);
            }
        }
        for chunk in message.texts {
            if let Some((door, text)) = remote.chunks().add(message.from, chunk)
                && let Some((subscriber, handler)) = self.texts.0.get()
                && *subscriber == door
            {
                handler(&text);
            }
        }
        // All doors, whichever is named: one statement for each that has waiters.
        if !message.doors.is_empty() {
            self.request_recheck();
        }
    }

    /// For the Redis bus: `wakeline.push` notifies over PostgreSQL, and each node listens for it there
    /// itself.
    pub async fn listen_for_sql(self: Arc<Self>, connector: Connector, options: Options) {
        let notifications = Notifications::new(connector, &options.channel);
        let mut backoff = Backoff::new();
        loop {
            if let Ok(mut messages) = notifications.listen().await {
                backoff.reset();
                // For what was pushed while there was no connection.
                self.request_recheck();
                while messages.next().await.is_some() {
                    self.request_recheck();
                }
                self.request_recheck();
            }
            tracing::warn!("no connection to listen for wakeline.push; trying again");
            backoff.pause().await;
        }
    }
}

impl Remote {
    async fn listen(&self) -> Result<BoxStream<'static, String>, TransportError> {
        timeout(LISTEN_TIMEOUT, self.transport.listen())
            .await
            .unwrap_or_else(|_| {
                Err(TransportError(
                    "no answer to the subscription within 10 s".into(),
                ))
            })
    }
}
