//! The bus of one process: publishing, listening, and knowing how well it works.

mod running;

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

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
pub enum BusMode {
    /// There is one process only: nothing to carry.
    InProcess,
    /// The bus carries them.
    Live,
    /// The bus does not answer: the doors ask their stores at the short interval.
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
    /// The way there and back of the last canary.
    pub round_trip: Option<Duration>,
    pub connects: u64,
}

/// See the module.
pub struct Bus {
    engine: Arc<Engine>,
    remote: Option<Remote>,
    /// Asks for the doors' question to their stores, out of turn.
    pub(crate) request_recheck: Notify,
    /// How often that was asked for.
    recheck_requests: AtomicU64,
    heeding: TextSubscription,
    /// Writes under way: see [`Write::commit`](crate::Write::commit).
    pub(crate) writes: TaskTracker,
}

/// What is done with what other processes tell a door.
type TextHandler = Box<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
struct TextSubscription(OnceLock<(&'static str, TextHandler)>);

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
        Arc::new(Self {
            engine,
            remote: None,
            request_recheck: Notify::new(),
            recheck_requests: AtomicU64::new(0),
            heeding: TextSubscription::default(),
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
        let bus = Arc::new(Self {
            engine,
            remote: Some(remote),
            request_recheck: Notify::new(),
            recheck_requests: AtomicU64::new(0),
            heeding: TextSubscription::default(),
            writes: TaskTracker::new(),
        });
        tokio::spawn(bus.clone().receive_loop());
        tokio::spawn(bus.clone().send_loop());
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
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put(wakes, Duration::ZERO);
        }
    }

    /// Wakes only those of the other processes.
    pub fn publish_elsewhere(&self, wakes: &[Wake]) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put(wakes, Duration::ZERO);
        }
    }

    /// Wakes the waiters of this process after `delay`, and those of the others by their own
    /// clocks: they are told now.
    pub fn publish_after(&self, wake: Wake, delay: Duration) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put([&wake], delay);
        }
        self.engine.wake_after(wake, delay);
    }

    /// The line to the others, unless there are none: a notification costs a commit, and a process
    /// that is known to be alone saves it.
    fn remote_if_any_peer(&self) -> Option<&Remote> {
        self.remote
            .as_ref()
            .filter(|remote| !remote.peers().are_none())
    }

    /// Whether there is no other process to tell.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.remote_if_any_peer().is_none()
    }

    fn request_recheck(&self) {
        self.recheck_requests.fetch_add(1, Ordering::SeqCst);
        self.request_recheck.notify_one();
    }

    /// How often the doors have been asked to look into their stores, out of turn. Whoever keeps
    /// in mind that there was nothing must forget it when this changes.
    #[must_use]
    pub fn recheck_requests(&self) -> u64 {
        self.recheck_requests.load(Ordering::SeqCst)
    }

    /// Everything of a door may have become ready, here and elsewhere: all ask their stores once.
    pub fn publish_door(&self, door: &str) {
        self.request_recheck();
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_doors(vec![door.to_owned()]);
        }
    }

    /// Tells the same door of the other processes a text of its own. It reaches each of them once,
    /// or not at all: what must not be missed is in the store, and a wake says so.
    pub fn broadcast(&self, door: &'static str, text: String) {
        if let Some(remote) = self.remote_if_any_peer() {
            remote.outbox.put_text(door, text);
        }
    }

    /// What is done with what the others tell `door`. Said once, by the one door that is told.
    pub fn subscribe(&self, door: &'static str, subscribe: impl Fn(&str) + Send + Sync + 'static) {
        let set = self.heeding.0.set((door, Box::new(subscribe)));
        assert!(set.is_ok(), "one door heeds");
    }

    /// Waits until the writes under way have ended and woken their waiters, at most `patience`. For
    /// the end of a process, before [`flush`](Self::flush).
    pub async fn finish_writes(&self, patience: Duration) {
        self.writes.close();
        if timeout(patience, self.writes.wait()).await.is_err() {
            tracing::warn!(
                writes = self.writes.len(),
                "writes are still under way; the other nodes find out by asking"
            );
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
