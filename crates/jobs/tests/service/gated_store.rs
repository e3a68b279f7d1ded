//! The real store, with its calls counted. A test may delay the result of a check, and
//! let a call fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::Semaphore;
use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_jobs::{
    job::{JobRegistration, NewJob},
    name::FullName,
    provider::{AnswerKey, NewProvider, Provider, ProviderRegistration, ProviderRequest},
    results::{AnswerState, ReadyCheck, ResultBackend, Upload, UploadOutcome},
    store::{Commit, Jobs, Providers, Query, Row, Store, StoreFuture, Tasks, Value, Workers},
    task::{
        ClaimOutcome, LostWorkers, NewTask, SubmitOutcome, SweepAges, SweepOutcome, Task,
        TaskUpdate, UpdateOutcome,
    },
    topic::{DOOR, Wait},
    worker::{OwnerOutcome, Worker},
};
use wakeline_store::Error;

#[derive(Debug)]
pub(crate) struct GatedStore {
    store: Arc<dyn Store>,
    results: Arc<dyn ResultBackend>,
    bus: Arc<Bus>,
    /// Whether answers are read together with their providers, as in the default backend.
    is_store: AtomicBool,
    gates: Arc<Gates>,
}

#[derive(Debug)]
struct Gates {
    /// Calls that fail once each.
    failing: Mutex<Vec<&'static str>>,
    begun: Mutex<Vec<&'static str>>,
    steps: AtomicUsize,
    looks: AtomicUsize,
    /// Which check is delayed, counted from one.
    held_up: AtomicUsize,
    had: Semaphore,
    gate: Semaphore,
}

impl Gates {
    fn begin(&self, step: &'static str) -> Result<(), Error> {
        self.steps.fetch_add(1, Ordering::SeqCst);
        self.begun.lock().unwrap().push(step);
        if self.fails(step) {
            return Err(Error::Unavailable("a test".to_owned()));
        }
        Ok(())
    }

    fn fails(&self, step: &str) -> bool {
        let mut failing = self.failing.lock().unwrap();
        let at = failing.iter().position(|failing| *failing == step);
        at.map(|at| failing.swap_remove(at)).is_some()
    }

    /// Counts a check, and waits if its result is to be delayed.
    async fn pass(&self) {
        let number = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.held_up.load(Ordering::SeqCst) {
            self.had.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
    }
}

impl GatedStore {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        results: Arc<dyn ResultBackend>,
        bus: Arc<Bus>,
    ) -> Self {
        Self {
            is_store: AtomicBool::new(results.is_store()),
            store,
            results,
            bus,
            gates: Arc::new(Gates {
                failing: Mutex::default(),
                begun: Mutex::default(),
                steps: AtomicUsize::new(0),
                looks: AtomicUsize::new(0),
                held_up: AtomicUsize::new(0),
                had: Semaphore::new(0),
                gate: Semaphore::new(0),
            }),
        }
    }

    /// Makes the backend appear to be outside of the store.
    pub(crate) fn keep_apart(&self) {
        self.is_store.store(false, Ordering::SeqCst);
    }

    /// The number of calls since the last call of this function.
    pub(crate) fn steps(&self) -> usize {
        self.gates.steps.swap(0, Ordering::SeqCst)
    }

    /// How often this call was begun.
    pub(crate) fn begun(&self, step: &str) -> usize {
        let begun = self.gates.begun.lock().unwrap();
        begun.iter().filter(|begun| **begun == step).count()
    }

    /// The next call with this name fails.
    pub(crate) fn fail(&self, step: &'static str) {
        self.gates.failing.lock().unwrap().push(step);
    }

    pub(crate) fn has_failed(&self, step: &str) -> bool {
        !self.gates.failing.lock().unwrap().contains(&step)
    }

    /// Delays the result of the check or claim after `after` more.
    pub(crate) fn hold_up(&self, after: usize) {
        let next = self.gates.looks.load(Ordering::SeqCst) + 1;
        self.gates.held_up.store(next + after, Ordering::SeqCst);
    }

    /// The number of checks and claims so far.
    pub(crate) fn looks(&self) -> usize {
        self.gates.looks.load(Ordering::SeqCst)
    }

    /// Until the check has its result and is delayed.
    pub(crate) async fn is_held_up(&self) {
        self.gates.had.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.gates.gate.add_permits(1);
    }

    fn step<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        step: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        async move {
            self.gates.begin(name)?;
            step.await
        }
        .boxed()
    }

    /// A call whose result may be delayed.
    fn look_at<'a, T: Send + 'a>(
        &'a self,
        name: &'static str,
        step: StoreFuture<'a, T>,
    ) -> StoreFuture<'a, T> {
        async move {
            let seen = self.step(name, step).await;
            self.gates.pass().await;
            seen
        }
        .boxed()
    }

    /// A committed write publishes its wakes as in the real store.
    fn write<T: Send + 'static>(&self, name: &'static str, write: Write<T>) -> Write<T> {
        let (gates, bus) = (self.gates.clone(), self.bus.clone());
        let run = async move {
            gates.begin(name)?;
            let written = write.commit(&bus).await;
            if name == "claim" {
                gates.pass().await;
            }
            written
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }
}

impl ResultBackend for GatedStore {
    fn is_store(&self) -> bool {
        self.is_store.load(Ordering::SeqCst)
    }

    fn get(&self, keys: Vec<AnswerKey>) -> StoreFuture<'_, Vec<AnswerState>> {
        self.look_at("look", self.results.get(keys))
    }

    fn are_ready(&self, at: Vec<ReadyCheck>) -> StoreFuture<'_, Vec<bool>> {
        self.step("glance", self.results.are_ready(at))
    }

    fn put(
        &self,
        key: AnswerKey,
        upload: Upload,
        ttl: Duration,
        readers: Wakes,
    ) -> Write<UploadOutcome> {
        self.write("put", self.results.put(key, upload, ttl, readers))
    }

    /// A failing `begin` is done, but its outcome is unknown.
    fn begin(&self, request: ProviderRequest, ttl: Duration) -> Write<bool> {
        let (gates, bus) = (self.gates.clone(), self.bus.clone());
        let begun = self.results.begin(request, ttl);
        let run = async move {
            let begun = begun.commit(&bus).await;
            if gates.begin("begin").is_err() {
                return Err(Error::OutcomeUnknown("a test".to_owned()));
            }
            begun
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    fn end(&self, key: AnswerKey, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.write("end", self.results.end(key, token, readers))
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> StoreFuture<'_, Vec<ProviderRequest>> {
        self.step("in_flight", self.results.in_flight(provider, version))
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        self.write("forget", self.results.forget(provider, version))
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        self.write("sweep_results", self.results.sweep())
    }
}

impl Query for GatedStore {
    fn rows(
        &self,
        kind: &'static str,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> StoreFuture<'_, Vec<Row>> {
        self.step(kind, self.store.rows(kind, statement, parameters))
    }

    fn written_rows(
        &self,
        commit: Commit,
        statement: &'static str,
        parameters: Vec<Value>,
    ) -> BoxFuture<'static, Result<Vec<Row>, Error>> {
        let gates = self.gates.clone();
        let rows = self.store.written_rows(commit, statement, parameters);
        async move {
            gates.begin(commit.kind())?;
            rows.await
        }
        .boxed()
    }
}

macro_rules! as_the_store_does {
    ($($trait:ident {
        $(write $write:ident($($given:ident: $kind:ty),*) -> $written:ty;)+
        $(read $read:ident($($name:ident: $type:ty),*) -> $answer:ty;)*
        $(look $look:ident($($with:ident: $like:ty),*) -> $found:ty;)*
    })+) => {
        $(impl $trait for GatedStore {
            $(fn $write(&self, $($given: $kind),*) -> Write<$written> {
                self.write(stringify!($write), self.store.$write($($given),*))
            })+
            $(fn $read(&self, $($name: $type),*) -> StoreFuture<'_, $answer> {
                self.step(stringify!($read), self.store.$read($($name),*))
            })*
            $(fn $look(&self, $($with: $like),*) -> StoreFuture<'_, $found> {
                self.look_at(stringify!($look), self.store.$look($($with),*))
            })*
        })+
    };
}

as_the_store_does! {
    Workers {
        write heartbeat(worker: Uuid, user: Uuid) -> OwnerOutcome<Worker>;
        write heartbeats(workers: Vec<Uuid>) -> ();
        write remove_worker(worker: Uuid, user: Option<Uuid>) -> OwnerOutcome<LostWorkers>;
        write sweep(terms: SweepAges) -> SweepOutcome;
    }
    Jobs {
        write register_job(job: NewJob) -> JobRegistration;
    }
    Tasks {
        write submit(task: NewTask) -> SubmitOutcome;
        write claim(worker: Uuid, user: Uuid) -> ClaimOutcome;
        write unclaim(task: Uuid, worker: Uuid) -> Option<Task>;
        write update(update: TaskUpdate) -> UpdateOutcome;
        read ready(waits: Vec<Wait>) -> Vec<Wait>;
    }
    Providers {
        write register_provider(provider: NewProvider) -> ProviderRegistration;
        write remove_provider(provider: Uuid, user: Option<Uuid>) -> OwnerOutcome<Provider>;
        write touch_provider(provider: Uuid, user: Option<Uuid>) -> OwnerOutcome<Provider>;
        read find_providers(names: Vec<FullName>) -> Vec<Option<Provider>>;
        look find_answers(questions: Vec<(FullName, String)>) -> Vec<Option<(Provider, AnswerState)>>;
    }
}
