//! The operations of workers, submitters and readers.

mod claims;
mod dispatch;
mod held_workers;
mod internal;
mod jobs;
mod ports;
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
    results::{UploadMemory, by_category::ResultsByCategory},
    schema::ProviderSchemas,
    socket::Sockets,
    store::Store,
    users::Users,
};
use dispatch::Dispatchers;
use held_workers::HeldWorkers;
use reads::Reads;

pub use claims::{Claim, ClaimGuard};
pub use jobs::Offer;
pub use reads::{AnsweredRead, ProviderAnswer, ReadStart};

/// How long a held request waits after the store has failed to answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);

/// The settings `jobs.*` of this service; the server's table of settings has their defaults.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Of jobs.
    pub categories: Vec<String>,
    /// Of providers; empty: any.
    pub provider_categories: Vec<String>,
    /// After so long without a heartbeat and without a held claim a worker is lost.
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
    /// How long a request is not sent again.
    pub inflight_ttl: Duration,
    /// How long a read is held that sends no `Prefer`.
    pub read_hold: Duration,
    pub max_read_hold: Duration,
    pub max_task_hold: Duration,
    /// A read that is not answered in time is 404, not 504.
    pub timeout_is_not_found: bool,
    /// Whether a task for a job without workers is refused.
    pub require_workers: bool,
    /// Bytes of an answer.
    pub max_result: u64,
    /// Bytes of memory for all uploads together, on their way into the store or Redis.
    pub upload_memory: u64,
    /// How long an upload may pause.
    pub upload_patience: Duration,
    /// Bytes of a job's or provider's schema.
    pub max_schema: usize,
    /// Retries that a job may ask for.
    pub max_retries: i32,
}

/// What the service is made of.
#[derive(Debug)]
pub struct Dependencies {
    pub store: Arc<dyn Store>,
    pub engine: Arc<Engine>,
    pub bus: Arc<Bus>,
    pub sockets: Arc<Sockets>,
    pub results: ResultsByCategory,
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
    results: Arc<ResultsByCategory>,
    users: Arc<Users>,
    internal: Registry,
    events: Events,
    reads: Reads,
    dispatchers: Dispatchers,
    held_workers: Arc<HeldWorkers>,
    frames: OnceLock<Arc<Frames>>,
    memory: UploadMemory,
    schemas: ProviderSchemas,
    settings: Settings,
}

impl Jobs {
    #[must_use]
    pub fn new(dependencies: Dependencies, settings: Settings) -> Arc<Self> {
        let results = Arc::new(dependencies.results);
        Arc::new(Self {
            events: Events::new(dependencies.sockets.clone(), dependencies.bus.clone()),
            reads: Reads::new(dependencies.store.clone(), results.clone()),
            dispatchers: Dispatchers::default(),
            held_workers: HeldWorkers::new(
                dependencies.store.clone(),
                dependencies.bus.clone(),
                settings.worker_timeout,
            ),
            frames: OnceLock::new(),
            memory: UploadMemory::new(settings.upload_memory),
            schemas: ProviderSchemas::default(),
            store: dependencies.store,
            engine: dependencies.engine,
            bus: dependencies.bus,
            sockets: dependencies.sockets,
            users: dependencies.users,
            internal: dependencies.internal,
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

    /// The memory for uploads.
    #[must_use]
    pub fn memory(&self) -> &UploadMemory {
        &self.memory
    }

    /// Called once, before the first request: jobs and frames know each other.
    pub fn has_frames(&self, frames: Arc<Frames>) {
        let weak = Arc::downgrade(&frames);
        if self.frames.set(frames).is_ok() {
            self.events.receive_changes(move |number, change| {
                if let Some(frames) = weak.upgrade() {
                    frames.receive_change(number, change);
                }
            });
        }
    }

    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }
}
