//! What a bus does for ever: it listens, sends what gathers, and sends and looks for its canary.

use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::BoxStream};
use tokio::time::{sleep, timeout};
use wakeline_store::postgres::Connector;
use wakeline_wake::Cause;

use super::{Bus, BusMode, EVERYTHING, Options, Remote};
use crate::{
    message::{self, Message, OutgoingWake},
    postgres::Notifications,
    transport::{Transport, TransportError},
};

/// Messages per send; what does not fit becomes "everything of the door".
const MAX_MESSAGES: usize = 32;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// A server that takes a connection and then says nothing is no better than none.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// After so many canary intervals without a word the line is replaced: it may have died without
/// being closed. Doubled each time that did not help (a pooler), up to the most.
const SILENT_CANARIES: u32 = 4;
const MOST_SILENT_CANARIES: u32 = 64;

impl Bus {
    /// For a bus that is not PostgreSQL's own: hears there what is pushed by SQL, for ever. Each
    /// node hears it, so nothing is sent on.
    pub async fn listen_for_sql(self: Arc<Self>, connector: Connector, options: Options) {
        let line = Notifications::new(connector, &options.channel);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(mut messages) = line.listen().await {
                pause = FIRST_PAUSE;
                // What was pushed while the line was down is in the store.
                self.request_recheck();
                while messages.next().await.is_some() {
                    self.request_recheck();
                }
                self.request_recheck();
            }
            tracing::warn!("no line to PostgreSQL for what is pushed by SQL; trying again");
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Listens for ever, on a new connection whenever the last one ends.
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
                    // What was published while the line was down is in the store.
                    self.request_recheck();
                    remote.canary_now.notify_one();
                    loop {
                        match timeout(silence, messages.next()).await {
                            Ok(Some(text)) => {
                                silence = remote.canary * SILENT_CANARIES;
                                self.handle_message(remote, &text);
                            }
                            Ok(None) => {
                                tracing::warn!(bus, "the bus' line was cut");
                                break;
                            }
                            Err(_) => {
                                tracing::info!(bus, "nothing is heard on the bus' line; a new one");
                                silence = (silence * 2).min(remote.canary * MOST_SILENT_CANARIES);
                                break;
                            }
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, bus, "no line to the bus"),
            }
            // Only then: a line that stays away is what the short interval is for.
            if remote.health().disconnected() {
                self.request_recheck();
            }
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn handle_message(&self, remote: &Remote, text: &str) {
        let Ok(message) = serde_json::from_str::<Message>(text) else {
            tracing::warn!(text, "a message on the bus' channel that is not ours");
            return;
        };
        if message.from == remote.node {
            if let Some(number) = message.canary {
                remote.note_canary(number);
                remote.peers().heard_myself();
            }
            return;
        }
        if message.canary.is_some() {
            let every = message.every.map_or(remote.canary, Duration::from_millis);
            if remote.peers().heard(message.from, every) {
                // What was published before it was known was not sent to it.
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
                && let Some((heeds, subscribe)) = self.heeding.0.get()
                && *heeds == door
            {
                subscribe(&text);
            }
        }
        if !message.doors.is_empty() {
            self.request_recheck();
        }
    }

    /// Sends what gathers, for ever. What cannot be sent becomes "everything of the door" when the
    /// line is back.
    pub(super) async fn send_loop(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        let mut pause = FIRST_PAUSE;
        loop {
            let gathered = remote.outbox.take().await;
            let messages = message::pack(
                remote.node,
                &gathered.said(),
                &gathered.texts,
                gathered.doors.clone(),
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
                    remote.outbox.put_doors(gathered.touched());
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

    /// Looks for the canary for ever, and says when it is missing. Apart from the sending, because
    /// a send that hangs is one way to go missing.
    pub(super) async fn measure(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        loop {
            sleep(remote.canary).await;
            if remote.is_canary_missing() && remote.is_canary_overdue() {
                self.request_recheck();
            }
        }
    }
}

impl Remote {
    async fn listen(&self) -> Result<BoxStream<'static, String>, TransportError> {
        timeout(LISTEN_TIMEOUT, self.transport.listen())
            .await
            .unwrap_or_else(|_| Err(TransportError("no answer to the subscription".into())))
    }

    async fn send(&self, messages: Vec<String>) -> Result<(), TransportError> {
        timeout(SEND_TIMEOUT, self.transport.send(messages))
            .await
            .unwrap_or_else(|_| Err(TransportError("no answer to what was sent".into())))
    }

    /// Without a line there is nothing to miss.
    fn is_canary_missing(&self) -> bool {
        let health = self.health();
        health
            .listening_since
            .map(|since| health.heard.map_or(since, |heard| heard.max(since)))
            .is_some_and(|last| last.elapsed() > self.canary.mul_f64(1.5))
    }

    fn note_canary(&self, number: u64) {
        let mut health = self.health();
        let now = Instant::now();
        health.heard = Some(now);
        health.warned = false;
        if let Some((_, sent)) = health.sent.filter(|(last, _)| *last == number) {
            health.round_trip = Some(now - sent);
        }
        if health.mode != BusMode::Live && health.listening_since.is_some() {
            health.mode = BusMode::Live;
            tracing::info!(bus = self.transport.kind(), "the bus is live");
        }
    }

    /// Whether that is news.
    fn is_canary_overdue(&self) -> bool {
        let mut health = self.health();
        health.round_trip = None;
        if !health.warned {
            health.warned = true;
            tracing::warn!(
                bus = self.transport.kind(),
                "subscribed, but nothing that is sent comes back; going on by asking the store at \
                 the short interval. {}",
                self.transport.when_silent()
            );
        }
        mem::replace(&mut health.mode, BusMode::Polling) != BusMode::Polling
    }
}
