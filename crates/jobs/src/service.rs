//! The operations: what a worker, a submitter and a reader can do.

mod claims;
mod dispatch;
mod front;
mod internal;
mod jobs;
mod providers;
mod readers;
mod reads;
mod recheck;
mod sweep;
mod tasks;
mod workers;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use wakeline_bus::Bus;
use wakeline_wake::Engine;

use crate::{
    events::Events,
    frames::Frames,
    internal::Registry,
    results::{Memory, choice::Choice},
    schema::ProviderSchemas,
    socket::Sockets,
    store::Store,
    users::Users,
};
use dispatch::Dispatchers;
use reads::Reads;

pub use claims::{Claim, Receipt};
pub use jobs::Offer;
pub use reads::{Begun, Found, Read};

/// How long a held request leaves the store alone after it has failed to answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Of jobs.
    pub categories: Vec<String>,
    /// Of providers; empty: any.
    pub provider_categories: Vec<String>,
    /// After so long without a heartbeat a worker is lost.
    pub worker_timeout: Duration,
    /// So long a task of `@internal` may take.
    pub internal_timeout: Duration,
    /// Tasks of `@internal` that this node runs at once.
    pub internal_tasks: usize,
    /// How long ended tasks are kept.
    pub keep_tasks: Duration,
    /// How long answers of providers are kept.
    pub result_ttl: Duration,
    /// The same for problems that they answer with.
    pub error_ttl: Duration,
    /// For how long a question is not asked again.
    pub inflight_ttl: Duration,
    /// How long a read is held that does not say.
    pub read_hold: Duration,
    pub max_read_hold: Duration,
    pub max_task_hold: Duration,
    /// A read that is not answered in time is 404, not 504.
    pub timeout_is_not_found: bool,
    /// A task is refused when nobody does its job.
    pub require_workers: bool,
    /// Bytes of an answer.
    pub max_result: u64,
    /// Bytes that all answers together have in hand on their way into the store or Redis.
    pub upload_memory: u64,
    /// How long an answer may pause on its way in.
    pub upload_patience: Duration,
    /// Bytes of a job's or provider's schema.
    pub max_schema: usize,
    /// Retries that a job may ask for.
    pub max_retries: i32,
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            categories: ["modifiers", "selections", "analysis"]
                .map(str::to_owned)
                .to_vec(),
            provider_categories: Vec::new(),
            worker_timeout: seconds(60),
            internal_timeout: seconds(3_600),
            internal_tasks: 4,
            keep_tasks: seconds(7 * 86_400),
            result_ttl: seconds(300),
            error_ttl: seconds(5),
            inflight_ttl: seconds(30),
            read_hold: seconds(5),
            max_read_hold: seconds(30),
            max_task_hold: seconds(60),
            timeout_is_not_found: false,
            require_workers: false,
            max_result: 64 << 20,
            upload_memory: 256 << 20,
            upload_patience: seconds(30),
            max_schema: 256 << 10,
            max_retries: 100,
        }
    }
}

/// What the door stands on.
#[derive(Debug)]
pub struct Ground {
    pub store: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub bus: Arc<Bus>,
    pub sockets: Arc<Sockets>,
    pub results: Choice,
    pub users: Arc<Users>,
    pub internal: Registry,
}

/// The door.
#[derive(Debug)]
pub struct Jobs {
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    bus: Arc<Bus>,
    sockets: Arc<Sockets>,
    results: Arc<Choice>,
    users: Arc<Users>,
    internal: Registry,
    events: Events,
    reads: Reads,
    dispatchers: Dispatchers,
    frames: OnceLock<Arc<Frames>>,
    memory: Memory,
    schemas: ProviderSchemas,
    settings: Settings,
}

impl Jobs {
    #[must_use]
    pub fn new(ground: Ground, settings: Settings) -> Arc<Self> {
        let results = Arc::new(ground.results);
        Arc::new(Self {
            events: Events::new(ground.sockets.clone(), ground.bus.clone()),
            reads: Reads::new(ground.store.clone(), results.clone()),
            dispatchers: Dispatchers::default(),
            frames: OnceLock::new(),
            memory: Memory::new(settings.upload_memory),
            schemas: ProviderSchemas::default(),
            store: ground.store,
            engine: ground.engine,
            bus: ground.bus,
            sockets: ground.sockets,
            users: ground.users,
            internal: ground.internal,
            results,
            settings,
        })
    }

    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    #[must_use]
    pub fn users(&self) -> &Arc<Users> {
        &self.users
    }

    /// What is left of the memory for answers on their way in.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Said once, before anybody is served: the two know one another.
    pub fn has_frames(&self, frames: Arc<Frames>) {
        let _ = self.frames.set(frames);
    }

    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }
}
