//! The bus of one process: publishing, listening, and knowing how well it works.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::StreamExt;
use tokio::{sync::Notify, time::sleep};
use wakeline_store::postgres::Connector;
use wakeline_wake::{Cause, Engine, Wake};

use crate::{
    message::{self, Message},
    outbox::Outbox,
    postgres::Notifications,
    redis::PubSub,
    transport::Transport,
};

/// Messages per send; what does not fit becomes "everything of the door".
const MAX_MESSAGES: usize = 32;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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
}

struct Remote {
    transport: Box<dyn Transport>,
    /// Tells own messages from those of others.
    node: u64,
    outbox: Outbox,
    canary: Duration,
    health: Mutex<Health>,
}

#[derive(Debug)]
struct Health {
    rung: Rung,
    sent: Option<(u64, Instant)>,
    heard: Option<Instant>,
    listening_since: Option<Instant>,
    round_trip: Option<Duration>,
    connects: u64,
    warned: bool,
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
        let health = Health {
            // Until the first canary is back nothing is known to arrive.
            rung: Rung::Polling,
            sent: None,
            heard: None,
            listening_since: None,
            round_trip: None,
            connects: 0,
            warned: false,
        };
        let remote = Remote {
            transport,
            node: rand::random(),
            outbox: Outbox::default(),
            canary: options.canary,
            health: Mutex::new(health),
        };
        let bus = Arc::new(Self {
            engine,
            remote: Some(remote),
            ask: Notify::new(),
        });
        tokio::spawn(bus.clone().listen());
        tokio::spawn(bus.clone().notify());
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
        if let Some(remote) = &self.remote {
            remote.outbox.put(wakes);
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
        let mut pause = FIRST_PAUSE;
        loop {
            match remote.transport.listen().await {
                Ok(mut messages) => {
                    pause = FIRST_PAUSE;
                    {
                        let mut health = remote.health();
                        health.connects += 1;
                        health.listening_since = Some(Instant::now());
                        health.heard = None;
                        health.warned = false;
                    }
                    // What was published while the line was down is in the store.
                    self.ask.notify_one();
                    self.send_canary().await;
                    while let Some(text) = messages.next().await {
                        self.hear(remote, &text);
                    }
                    tracing::warn!(bus = remote.transport.kind(), "the bus' line was cut");
                }
                Err(error) => {
                    tracing::warn!(%error, bus = remote.transport.kind(), "no line to the bus");
                }
            }
            {
                let mut health = remote.health();
                health.listening_since = None;
                health.rung = Rung::Polling;
            }
            self.ask.notify_one();
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
            }
            return;
        }
        metrics::counter!("wakeline_bus_received_total").increment(1);
        for wake in &message.wakes {
            self.engine.wake(&Wake::from(wake), Cause::Notify);
        }
        if !message.doors.is_empty() {
            self.ask.notify_one();
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
                &gathered.wakes(),
                gathered.doors.clone(),
                remote.transport.max_bytes(),
                MAX_MESSAGES,
            );
            let count = messages.len() as u64;
            match remote.transport.send(messages).await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
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

    /// The canary: measures the bus for ever, and says which rung is live.
    async fn measure(self: Arc<Self>) {
        let Some(remote) = &self.remote else { return };
        loop {
            sleep(remote.canary).await;
            let missed = {
                let health = remote.health();
                let last = health.heard.max(health.listening_since);
                last.is_some_and(|last| last.elapsed() > remote.canary.mul_f64(1.5))
            };
            if missed {
                remote.miss_canary();
                self.ask.notify_one();
            }
            self.send_canary().await;
        }
    }

    async fn send_canary(&self) {
        let Some(remote) = &self.remote else { return };
        let number = {
            let mut health = remote.health();
            let number = health.sent.map_or(0, |(number, _)| number) + 1;
            health.sent = Some((number, Instant::now()));
            number
        };
        let canary = Message {
            from: remote.node,
            canary: Some(number),
            ..Message::default()
        };
        if let Err(error) = remote.transport.send(vec![message::text(&canary)]).await {
            tracing::debug!(%error, "the canary could not be sent");
        }
    }
}

impl Remote {
    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear_canary(&self, number: u64) {
        let mut health = self.health();
        let now = Instant::now();
        health.heard = Some(now);
        if let Some((_, sent)) = health.sent.filter(|(last, _)| *last == number) {
            health.round_trip = Some(now - sent);
        }
        if health.rung != Rung::Live && health.listening_since.is_some() {
            health.rung = Rung::Live;
            tracing::info!(bus = self.transport.kind(), "the bus is live");
        }
    }

    fn miss_canary(&self) {
        let mut health = self.health();
        health.rung = Rung::Polling;
        health.round_trip = None;
        if !health.warned {
            health.warned = true;
            tracing::warn!(
                bus = self.transport.kind(),
                "subscribed, but nothing that is sent comes back; going on by asking the store at \
                 the short interval. Is a pooler in transaction mode (PgBouncer) in front of \
                 PostgreSQL? LISTEN needs a direct connection or session mode"
            );
        }
    }
}
