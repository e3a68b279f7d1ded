//! The background tasks of a bus: receive messages, send messages, send canaries, miss canaries.

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::BoxStream};
use metrics::describe_counter;
use tokio::time::{sleep, timeout};
use wakeline_store::postgres::Connector;
use wakeline_wake::Cause;

use super::{Bus, BusMode, EVERYTHING, Options, Remote};
use crate::{
    message::{self, Message, OutgoingWake},
    postgres::Notifications,
    transport::{Transport, TransportError},
};

/// Messages per send. Wakes that do not fit become "everything of the door".
const MAX_MESSAGES: usize = 32;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A server may accept a connection and then not answer.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// After so many canary intervals without a message the connection is replaced: it may have died
/// without being closed. Doubled each time that did not help (a pooler), up to the most.
const SILENT_CANARIES: u32 = 4;
const MOST_SILENT_CANARIES: u32 = 64;

/// For `/metrics`.
pub fn describe_metrics() {
    describe_counter!(
        "wakeline_bus_sent_total",
        "Messages sent to the other nodes"
    );
    describe_counter!(
        "wakeline_bus_received_total",
        "Messages received from the other nodes"
    );
    describe_counter!(
        "wakeline_bus_texts_lost_total",
        "Broadcast texts dropped because too many waited to be sent"
    );
}

impl Bus {
    /// For the Redis bus: `wakeline.push` notifies over PostgreSQL, and each node listens for it there
    /// itself.
    pub async fn listen_for_sql(self: Arc<Self>, connector: Connector, options: Options) {
        let notifications = Notifications::new(connector, &options.channel);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(mut messages) = notifications.listen().await {
                pause = FIRST_PAUSE;
                // For what was pushed while there was no connection.
                self.request_recheck();
                while messages.next().await.is_some() {
                    self.request_recheck();
                }
                self.request_recheck();
            }
            tracing::warn!("no connection to listen for wakeline.push; trying again");
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Receives for ever, on a new connection whenever the last one ends.
    pub(super) async fn receive_loop(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        let bus = remote.transport.kind();
        let mut pause = FIRST_PAUSE;
        let mut silence = remote.canary * SILENT_CANARIES;
        loop {
            match remote.listen().await {
                Ok(mut messages) => {
                    pause = FIRST_PAUSE;
                    remote.health().connected();
                    remote.peers().greet();
                    // For what was published while there was no connection.
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
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn handle_message(&self, remote: &Remote, text: &str) {
        let Ok(message) = serde_json::from_str::<Message>(text) else {
            tracing::warn!(
                text,
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
                // A new process: wakes that were published while this one was alone were not sent.
                remote.outbox.put_doors(vec![EVERYTHING.to_owned()]);
            }
            if message.hello {
                remote.canary_now.notify_one();
            }
        }
        metrics::counter!("wakeline_bus_received_total").increment(1);
        for OutgoingWake { wake, after } in message.wakes.iter().map(OutgoingWake::from) {
            if after.is_zero() {
                self.engine.wake(&wake, Cause::Notify);
            } else {
                self.engine.wake_after(wake, after);
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
        if !message.doors.is_empty() {
            self.request_recheck();
        }
    }

    /// Sends what is in the outbox, for ever. What cannot be sent becomes "everything of the door"
    /// with the next attempt.
    pub(super) async fn send_loop(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        let mut pause = FIRST_PAUSE;
        loop {
            let batch = remote.outbox.take().await;
            let messages = message::pack(
                remote.node,
                &batch.wakes(),
                &batch.texts,
                batch.doors.clone(),
                remote.transport.max_bytes(),
                MAX_MESSAGES,
            );
            let count = messages.len() as u64;
            match remote.send(messages).await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    remote.outbox.sent();
                    metrics::counter!("wakeline_bus_sent_total").increment(count);
                }
                Err(error) => {
                    tracing::debug!(%error, "wakes could not be sent; trying again");
                    remote.outbox.put_doors(batch.all_doors());
                    sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

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
    async fn listen(&self) -> Result<BoxStream<'static, String>, TransportError> {
        timeout(LISTEN_TIMEOUT, self.transport.listen())
            .await
            .unwrap_or_else(|_| {
                Err(TransportError(
                    "no answer to the subscription within 10 s".into(),
                ))
            })
    }

    async fn send(&self, messages: Vec<String>) -> Result<(), TransportError> {
        timeout(SEND_TIMEOUT, self.transport.send(messages))
            .await
            .unwrap_or_else(|_| Err(TransportError("no answer to a message within 5 s".into())))
    }

    /// Without a connection none is expected.
    fn is_canary_missing(&self) -> bool {
        let health = self.health();
        health
            .listening_since
            .map(|since| health.canary_received.map_or(since, |last| last.max(since)))
            .is_some_and(|last| last.elapsed() > self.canary.mul_f64(1.5))
    }

    fn canary_received(&self, number: u64) {
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
