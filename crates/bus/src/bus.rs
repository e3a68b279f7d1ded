//! The bus of one process: it wakes the waiters here and in the other processes, and knows whether
//! the wakes arrive.

mod backoff;
mod canary;
mod receive;
mod send;

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::describe_counter;
use tokio::{sync::Notify, time::timeout};
use tokio_util::task::TaskTracker;
use wakeline_store::postgres::Connector;
use wakeline_wake::{Cause, Engine, Wake};

use crate::{
    chunks::Chunks, health::Health, outbox::Outbox, peers::Peers, postgres::Notifications,
    redis::PubSub, transport::Transport,
};

/// Instead of a door's name: all of them.
const EVERYTHING: &str = "*";

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

#[derive(Clone, Debug)]
pub struct Options {
    pub channel: String,
    /// How often a canary is sent. After twice this time without one the bus counts as dead.
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

/// How wakes reach this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusMode {
    /// There is one process only, and no bus.
    InProcess,
    /// Over the bus.
    Live,
    /// The bus carries nothing: the doors recheck at the short interval.
    Polling,
}

impl BusMode {
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
    pub mode: BusMode,
    /// Of the last canary.
    pub round_trip: Option<Duration>,
    pub connects: u64,
}

/// See the module.
pub struct Bus {
    engine: Arc<Engine>,
    remote: Option<Remote>,
    /// The doors shall recheck their waiters now.
    pub(crate) recheck_now: Notify,
    /// How often that was requested.
    recheck_requests: AtomicU64,
    texts: TextSubscription,
    /// Writes under way: see [`Write::commit`](crate::Write::commit).
    pub(crate) writes: TaskTracker,
}

/// Called with the texts that other processes broadcast.
type TextHandler = Box<dyn Fn(&str) + Send + Sync>;

/// The door that has subscribed, and its handler.
#[derive(Default)]
struct TextSubscription(OnceLock<(&'static str, TextHandler)>);

struct Remote {
    transport: Box<dyn Transport>,
    /// Marks this process' messages.
    node: u64,
    outbox: Outbox,
    canary: Duration,
    /// A canary shall be sent now.
    canary_now: Notify,
    health: Mutex<Health>,
    peers: Mutex<Peers>,
    /// Texts of which some chunks have come.
    chunks: Mutex<Chunks>,
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
        Self::new(engine, None)
    }

    fn new(engine: Arc<Engine>, remote: Option<Remote>) -> Arc<Self> {
        Arc::new(Self {
            engine,
            remote,
            recheck_now: Notify::new(),
            recheck_requests: AtomicU64::new(0),
            texts: TextSubscription::default(),
            writes: TaskTracker::new(),
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
            chunks: Mutex::default(),
        };
        let bus = Self::new(engine, Some(remote));
        tokio::spawn(bus.clone().receive_loop());
        tokio::spawn(bus.clone().send_loop());
        tokio::spawn(bus.clone().send_canaries());
        tokio::spawn(bus.clone().watch_canary());
        bus
    }

    /// Wakes the waiters of this process now, and those of the others as soon as the bus carries it.
    /// Call it after the commit: a woken waiter must find what it was woken for.
    pub fn wake(&self, wakes: &[Wake]) {
        if wakes.is_empty() {
            return;
        }
        for wake in wakes {
            self.engine.wake(wake, Cause::Notify);
        }
        self.wake_others(wakes);
    }

    /// Wakes only the waiters of the other processes. The send loop takes the wakes from the outbox.
    pub fn wake_others(&self, wakes: &[Wake]) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_wakes(wakes, Duration::ZERO);
        }
    }

    /// Wakes the waiters of all processes after `delay`. The other processes get the wake now and set
    /// timers of their own.
    pub fn wake_after(&self, wake: Wake, delay: Duration) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_wakes(std::slice::from_ref(&wake), delay);
        }
        self.engine.wake_after(wake, delay);
    }

    /// `None` while there is no other process: a notification costs a commit, which a process that
    /// knows itself alone saves.
    fn remote_if_any_peer(&self) -> Option<&Remote> {
        self.remote
            .as_ref()
            .filter(|remote| !remote.peers().are_none())
    }

    /// Whether there is no other process.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.remote_if_any_peer().is_none()
    }

    fn request_recheck(&self) {
        self.recheck_requests.fetch_add(1, Ordering::SeqCst);
        self.recheck_now.notify_one();
    }

    /// How often a recheck was requested out of turn. A cached "nothing there" is void when this
    /// changes.
    #[must_use]
    pub fn recheck_requests(&self) -> u64 {
        self.recheck_requests.load(Ordering::SeqCst)
    }

    /// There may be something for any waiter of `door`: it rechecks all of them, in every process.
    pub fn recheck_door(&self, door: &str) {
        self.request_recheck();
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_doors([door.to_owned()]);
        }
    }

    /// Sends a text to the same door of the other processes. It reaches each of them at most once:
    /// what must not be missed belongs into the store, with a wake.
    pub fn broadcast(&self, door: &'static str, text: String) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_text(door, text);
        }
    }

    /// Calls `handler` with each text that other processes broadcast to `door`. One door of a process
    /// can subscribe, once.
    pub fn subscribe(&self, door: &'static str, handler: impl Fn(&str) + Send + Sync + 'static) {
        let set = self.texts.0.set((door, Box::new(handler)));
        assert!(set.is_ok(), "one door subscribes");
    }

    /// Waits until the writes under way have ended and woken their waiters, at most `longest`. For
    /// the end of a process, before [`flush`](Self::flush).
    pub async fn finish_writes(&self, longest: Duration) {
        self.writes.close();
        if timeout(longest, self.writes.wait()).await.is_err() {
            tracing::warn!(
                writes = self.writes.len(),
                "writes are still under way; the other nodes find what they commit by the fallback"
            );
        }
    }

    /// Waits until all wakes have been sent, at most `longest`. For the end of a process: what it
    /// does not send, the others find by their fallback.
    pub async fn flush(&self, longest: Duration) {
        if let Some(remote) = &self.remote
            && timeout(longest, remote.outbox.flushed()).await.is_err()
        {
            tracing::warn!(
                "the last wakes could not be sent; the other nodes find what is ready by the fallback"
            );
        }
    }

    #[must_use]
    pub fn mode(&self) -> BusMode {
        self.remote
            .as_ref()
            .map_or(BusMode::InProcess, |remote| remote.health().mode)
    }

    #[must_use]
    pub fn status(&self) -> Status {
        match &self.remote {
            None => Status {
                kind: "memory",
                mode: BusMode::InProcess,
                round_trip: None,
                connects: 0,
            },
            Some(remote) => {
                let health = remote.health();
                Status {
                    kind: remote.transport.kind(),
                    mode: health.mode,
                    round_trip: health.round_trip,
                    connects: health.connects,
                }
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

    fn chunks(&self) -> std::sync::MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
