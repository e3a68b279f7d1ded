//! The bus of one process: publishing, listening, and knowing how well it works.

use std::{
    mem,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::BoxStream};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use wakeline_store::postgres::Connector;
use wakeline_wake::{Cause, Engine, Wake};

use crate::{
    health::Health,
    message::{self, Message, Said},
    outbox::Outbox,
    peers::Peers,
    pieces::Pieces,
    postgres::Notifications,
    redis::PubSub,
    transport::{Down, Transport},
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
/// Instead of a door's name: all of them.
const EVERYTHING: &str = "*";

#[derive(Clone, Debug)]
pub struct Options {
    pub channel: String,
    /// How often the bus is measured. After twice this time without an answer it counts as dead.
    pub canary: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            channel: "wakeline".into(),
            canary: Duration::from_secs(5),
        }
    }
}

/// How wakes reach this process at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// There is one process only: nothing to carry.
    InProcess,
    /// The bus carries them.
    Live,
    /// The bus does not answer: the doors ask their stores at the short interval.
    Polling,
}

impl Rung {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Live => "live",
            Self::Polling => "polling",
        }
    }
}

/// For `/readyz?verbose` and the metrics.
#[derive(Clone, Copy, Debug)]
pub struct Status {
    pub kind: &'static str,
    pub rung: Rung,
    /// The way there and back of the last canary.
    pub round_trip: Option<Duration>,
    pub connects: u64,
}

/// See the module.
pub struct Bus {
    engine: Arc<Engine>,
    remote: Option<Remote>,
    /// Asks for the doors' question to their stores, out of turn.
    pub(crate) ask: Notify,
    /// How often that was asked for.
    asked: AtomicU64,
    heeding: Heeding,
}

/// What is done with what other processes tell a door.
type Heed = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct Heeding(OnceLock<(&'static str, Heed)>);

struct Remote {
    transport: Box<dyn Transport>,
    /// Tells own messages from those of others.
    node: u64,
    outbox: Outbox,
    canary: Duration,
    /// Asks for a canary out of turn.
    canary_now: Notify,
    health: Mutex<Health>,
    peers: Mutex<Peers>,
    /// Texts that came in part.
    pieces: Mutex<Pieces>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Bus")
            .field("status", &self.status())
            .finish()
    }
}

impl Bus {
    /// For a single process.
    #[must_use]
    pub fn local(engine: Arc<Engine>) -> Arc<Self> {
        Arc::new(Self {
            engine,
            remote: None,
            ask: Notify::new(),
            asked: AtomicU64::new(0),
            heeding: Heeding::default(),
        })
    }

    /// On PostgreSQL's notifications.
    #[must_use]
    pub fn postgres(engine: Arc<Engine>, connector: Connector, options: &Options) -> Arc<Self> {
        let transport = Notifications::new(connector, &options.channel);
        Self::start(engine, Box::new(transport), options)
    }

    /// On Redis.
    pub fn redis(engine: Arc<Engine>, url: &str, options: &Options) -> Result<Arc<Self>, String> {
        let transport = PubSub::new(url, &options.channel).map_err(|error| error.to_string())?;
        Ok(Self::start(engine, Box::new(transport), options))
    }

    fn start(engine: Arc<Engine>, transport: Box<dyn Transport>, options: &Options) -> Arc<Self> {
        let remote = Remote {
            transport,
            node: rand::random(),
            outbox: Outbox::default(),
            canary: options.canary,
            canary_now: Notify::new(),
            health: Mutex::default(),
            peers: Mutex::default(),
            pieces: Mutex::default(),
        };
        let bus = Arc::new(Self {
            engine,
            remote: Some(remote),
            ask: Notify::new(),
            asked: AtomicU64::new(0),
            heeding: Heeding::default(),
        });
        tokio::spawn(bus.clone().listen());
        tokio::spawn(bus.clone().notify());
        tokio::spawn(bus.clone().send_canaries());
        tokio::spawn(bus.clone().measure());
        bus
    }

    /// Wakes the waiters of this process now, and those of the others as soon as the bus takes it.
    /// To be called after the commit: whoever is woken must find what it is woken for.
    pub fn publish(&self, wakes: &[Wake]) {
        if wakes.is_empty() {
            return;
        }
        for wake in wakes {
            self.engine.wake(wake, Cause::Notify);
        }
        if let Some(remote) = self.company() {
            remote.outbox.put(wakes, Duration::ZERO);
        }
    }

    /// Wakes only those of the other processes.
    pub fn publish_elsewhere(&self, wakes: &[Wake]) {
        if let Some(remote) = self.company() {
            remote.outbox.put(wakes, Duration::ZERO);
        }
    }

    /// Wakes the waiters of this process after `delay`, and those of the others by their own
    /// clocks: they are told now.
    pub fn publish_after(&self, wake: Wake, delay: Duration) {
        if let Some(remote) = self.company() {
            remote.outbox.put([&wake], delay);
        }
        self.engine.wake_after(wake, delay);
    }

    /// The line to the others, unless there are none: a notification costs a commit, and a process
    /// that is known to be alone saves it.
    fn company(&self) -> Option<&Remote> {
        self.remote
            .as_ref()
            .filter(|remote| !remote.peers().are_none())
    }

    /// Whether there is no other process to tell.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.company().is_none()
    }

    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.ask.notify_one();
    }

    /// How often the doors have been asked to look into their stores, out of turn. Whoever keeps
    /// in mind that there was nothing must forget it when this changes.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// Everything of a door may have become ready, here and elsewhere: all ask their stores once.
    pub fn publish_door(&self, door: &str) {
        self.ask();
        if let Some(remote) = self.company() {
            remote.outbox.put_doors(vec![door.to_owned()]);
        }
    }

    /// Tells the same door of the other processes a text of its own. It reaches each of them once,
    /// or not at all: what must not be missed is in the store, and a wake says so.
    pub fn tell(&self, door: &'static str, text: String) {
        if let Some(remote) = self.company() {
            remote.outbox.put_text(door, text);
        }
    }

    /// What is done with what the others tell `door`. Said once, by the one door that is told.
    pub fn heed(&self, door: &'static str, heed: impl Fn(&str) + Send + Sync + 'static) {
        let set = self.heeding.0.set((door, Box::new(heed)));
        assert!(set.is_ok(), "one door heeds");
    }

    /// For a bus that is not PostgreSQL's own: hears there what is pushed by SQL, for ever. Each
    /// node hears it, so nothing is sent on.
    pub async fn hear_sql(self: Arc<Self>, connector: Connector, options: Options) {
        let line = Notifications::new(connector, &options.channel);
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(mut messages) = line.listen().await {
                pause = FIRST_PAUSE;
                // What was pushed while the line was down is in the store.
                self.ask();
                while messages.next().await.is_some() {
                    self.ask();
                }
                self.ask();
            }
            tracing::warn!("no line to PostgreSQL for what is pushed by SQL; trying again");
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits until the other processes have been told everything, at most `patience`. For the end
    /// of a process: what it does not send, they learn only by their fallback.
    pub async fn flush(&self, patience: Duration) {
        if let Some(remote) = &self.remote
            && timeout(patience, remote.outbox.flushed()).await.is_err()
        {
            tracing::warn!("the last wakes could not be sent; the other nodes find out by asking");
        }
    }

    #[must_use]
    pub fn rung(&self) -> Rung {
        self.remote
            .as_ref()
            .map_or(Rung::InProcess, |remote| remote.health().rung)
    }

    #[must_use]
    pub fn status(&self) -> Status {
        match &self.remote {
            None => Status {
                kind: "memory",
                rung: Rung::InProcess,
                round_trip: None,
                connects: 0,
            },
            Some(remote) => {
                let health = remote.health();
                Status {
                    kind: remote.transport.kind(),
                    rung: health.rung,
                    round_trip: health.round_trip,
                    connects: health.connects,
                }
            }
        }
    }

    /// Listens for ever, on a new connection whenever the last one ends.
    async fn listen(self: Arc<Self>) {
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
                    self.ask();
                    remote.canary_now.notify_one();
                    loop {
                        match timeout(silence, messages.next()).await {
                            Ok(Some(text)) => {
                                silence = remote.canary * SILENT_CANARIES;
                                self.hear(remote, &text);
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
                self.ask();
            }
            sleep(pause.mul_f64(rand::random_range(0.75..1.25))).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn hear(&self, remote: &Remote, text: &str) {
        let Ok(message) = serde_json::from_str::<Message>(text) else {
            tracing::warn!(text, "a message on the bus' channel that is not ours");
            return;
        };
        if message.from == remote.node {
            if let Some(number) = message.canary {
                remote.hear_canary(number);
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
        for Said { wake, after } in message.wakes.iter().map(Said::from) {
            if after.is_zero() {
                self.engine.wake(&wake, Cause::Notify);
            } else {
                self.engine.wake_after(wake, after);
            }
        }
        for piece in message.texts {
            if let Some((door, text)) = remote.pieces().add(message.from, piece)
                && let Some((heeds, heed)) = self.heeding.0.get()
                && *heeds == door
            {
                heed(&text);
            }
        }
        if !message.doors.is_empty() {
            self.ask();
        }
    }

    /// Sends what gathers, for ever. What cannot be sent becomes "everything of the door" when the
    /// line is back.
    async fn notify(self: Arc<Self>) {
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
    async fn send_canaries(self: Arc<Self>) {
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
    async fn measure(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        loop {
            sleep(remote.canary).await;
            if remote.is_canary_missing() && remote.miss_canary() {
                self.ask();
            }
        }
    }
}

impl Remote {
    fn peers(&self) -> std::sync::MutexGuard<'_, Peers> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pieces(&self) -> std::sync::MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(&self) -> Result<BoxStream<'static, String>, Down> {
        timeout(LISTEN_TIMEOUT, self.transport.listen())
            .await
            .unwrap_or_else(|_| Err(Down("no answer to the subscription".into())))
    }

    async fn send(&self, messages: Vec<String>) -> Result<(), Down> {
        timeout(SEND_TIMEOUT, self.transport.send(messages))
            .await
            .unwrap_or_else(|_| Err(Down("no answer to what was sent".into())))
    }

    /// Without a line there is nothing to miss.
    fn is_canary_missing(&self) -> bool {
        let health = self.health();
        health
            .listening_since
            .map(|since| health.heard.map_or(since, |heard| heard.max(since)))
            .is_some_and(|last| last.elapsed() > self.canary.mul_f64(1.5))
    }

    fn hear_canary(&self, number: u64) {
        let mut health = self.health();
        let now = Instant::now();
        health.heard = Some(now);
        health.warned = false;
        if let Some((_, sent)) = health.sent.filter(|(last, _)| *last == number) {
            health.round_trip = Some(now - sent);
        }
        if health.rung != Rung::Live && health.listening_since.is_some() {
            health.rung = Rung::Live;
            tracing::info!(bus = self.transport.kind(), "the bus is live");
        }
    }

    /// Whether that is news.
    fn miss_canary(&self) -> bool {
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
        mem::replace(&mut health.rung, Rung::Polling) != Rung::Polling
    }
}
