//! The store as it is, with its steps counted. A test may hold a look up after it has been had, and
//! let a step fail.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wakeline_bus::{Bus, Wakes, Write};
use wakeline_jobs::{
    job::{Job, NewJob, Registered},
    name::FullName,
    page::{Page, Paged},
    provider::{Key, NewProvider, Provider, ProviderFilter, ProviderRegistered, Request},
    results::{Glance, Kept, Look, Results, Upload},
    store::{Jobs, Providers, Step, Store, Tasks, Workers},
    task::{Claimed, Loss, NewTask, Submitted, Swept, Task, TaskFilter, Terms, Update, Updated},
    topic::{DOOR, Wait},
    worker::{Owned, Worker, WorkerSummary},
};
use wakeline_store::Error;

#[derive(Debug)]
pub(crate) struct Gated {
    store: Arc<dyn Store>,
    results: Arc<dyn Results>,
    bus: Arc<Bus>,
    /// Whether answers are looked for together with their providers, as in the default place.
    is_store: AtomicBool,
    gates: Arc<Gates>,
}

#[derive(Debug)]
struct Gates {
    /// Steps that fail once each.
    failing: Mutex<Vec<&'static str>>,
    begun: Mutex<Vec<&'static str>>,
    steps: AtomicUsize,
    looks: AtomicUsize,
    /// Which look is held up, counted from one.
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

    /// After a look.
    async fn pass(&self) {
        let number = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.held_up.load(Ordering::SeqCst) {
            self.had.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
        }
    }
}

impl Gated {
    pub(crate) fn new(store: Arc<dyn Store>, results: Arc<dyn Results>, bus: Arc<Bus>) -> Self {
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

    /// As a place of its own, beside the store.
    pub(crate) fn stand_apart(&self) {
        self.is_store.store(false, Ordering::SeqCst);
    }

    /// How many steps were asked for since this was asked.
    pub(crate) fn steps(&self) -> usize {
        self.gates.steps.swap(0, Ordering::SeqCst)
    }

    /// How often a step was begun.
    pub(crate) fn begun(&self, step: &str) -> usize {
        let begun = self.gates.begun.lock().unwrap();
        begun.iter().filter(|begun| **begun == step).count()
    }

    /// The next of these steps fails.
    pub(crate) fn fail(&self, step: &'static str) {
        self.gates.failing.lock().unwrap().push(step);
    }

    pub(crate) fn has_failed(&self, step: &str) -> bool {
        !self.gates.failing.lock().unwrap().contains(&step)
    }

    /// The look, or the claim, after so many more is held up.
    pub(crate) fn hold_up(&self, after: usize) {
        let next = self.gates.looks.load(Ordering::SeqCst) + 1;
        self.gates.held_up.store(next + after, Ordering::SeqCst);
    }

    /// What it found is known, and nobody has heard it.
    pub(crate) async fn is_held_up(&self) {
        self.gates.had.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.gates.gate.add_permits(1);
    }

    fn step<'a, T: Send + 'a>(&'a self, name: &'static str, step: Step<'a, T>) -> Step<'a, T> {
        async move {
            self.gates.begin(name)?;
            step.await
        }
        .boxed()
    }

    /// A step whose answer may be held up.
    fn look_at<'a, T: Send + 'a>(&'a self, name: &'static str, step: Step<'a, T>) -> Step<'a, T> {
        async move {
            let seen = self.step(name, step).await;
            self.gates.pass().await;
            seen
        }
        .boxed()
    }

    /// What is committed wakes whom it says, here as there.
    fn write<T: Send + 'static>(&self, name: &'static str, write: Write<T>) -> Write<T> {
        let (gates, bus) = (self.gates.clone(), self.bus.clone());
        let run = async move {
            gates.begin(name)?;
            write.commit(&bus).await
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }
}

impl Results for Gated {
    fn is_store(&self) -> bool {
        self.is_store.load(Ordering::SeqCst)
    }

    fn look(&self, keys: Vec<Key>) -> Step<'_, Vec<Look>> {
        self.look_at("look", self.results.look(keys))
    }

    fn glance(&self, at: Vec<Glance>) -> Step<'_, Vec<bool>> {
        self.step("glance", self.results.glance(at))
    }

    fn put(&self, key: Key, upload: Upload, ttl: Duration, readers: Wakes) -> Write<Kept> {
        self.write("put", self.results.put(key, upload, ttl, readers))
    }

    /// If it fails, it is done and nobody knows.
    fn begin(&self, request: Request, ttl: Duration) -> Write<bool> {
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

    fn end(&self, key: Key, token: Option<Uuid>, readers: Wakes) -> Write<()> {
        self.write("end", self.results.end(key, token, readers))
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        self.step("in_flight", self.results.in_flight(provider, version))
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Write<()> {
        self.write("forget", self.results.forget(provider, version))
    }

    fn sweep(&self) -> Write<Option<Duration>> {
        self.write("sweep_results", self.results.sweep())
    }
}

impl Tasks for Gated {
    fn claim(&self, worker: Uuid, user: Uuid) -> Write<Claimed> {
        let (gates, bus) = (self.gates.clone(), self.bus.clone());
        let claim = self.write("claim", self.store.claim(worker, user));
        let run = async move {
            let claimed = claim.commit(&bus).await;
            gates.pass().await;
            claimed
        };
        Write::new(DOOR, run, |_| Wakes::none())
    }

    fn submit(&self, task: NewTask) -> Write<Submitted> {
        self.write("submit", self.store.submit(task))
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Write<Option<Task>> {
        self.write("unclaim", self.store.unclaim(task, worker))
    }

    fn task(&self, task: Uuid) -> Step<'_, Option<Task>> {
        self.step("task", self.store.task(task))
    }

    fn update(&self, update: Update) -> Write<Updated> {
        self.write("update", self.store.update(update))
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Step<'_, Paged<Task>> {
        self.step("tasks", self.store.tasks(filter, page))
    }

    fn ready(&self, waits: Vec<Wait>) -> Step<'_, Vec<Wait>> {
        self.step("ready", self.store.ready(waits))
    }
}

macro_rules! as_the_store_does {
    ($($trait:ident {
        $(write $write:ident($($given:ident: $kind:ty),*) -> $written:ty;)+
        $(read $read:ident($($name:ident: $type:ty),*) -> $answer:ty;)+
    })+) => {
        $(impl $trait for Gated {
            $(fn $write(&self, $($given: $kind),*) -> Write<$written> {
                self.write(stringify!($write), self.store.$write($($given),*))
            })+
            $(fn $read(&self, $($name: $type),*) -> Step<'_, $answer> {
                self.step(stringify!($read), self.store.$read($($name),*))
            })+
        })+
    };
}

as_the_store_does! {
    Workers {
        write create_worker(user: Uuid) -> Worker;
        write heartbeat(worker: Uuid, user: Uuid) -> Owned<Worker>;
        write remove_worker(worker: Uuid, user: Option<Uuid>) -> Owned<Loss>;
        write sweep(terms: Terms) -> Swept;
        read worker_owner(worker: Uuid) -> Option<Uuid>;
        read workers(page: Page) -> Paged<WorkerSummary>;
        read workers_of(scopes: Vec<String>, page: Page) -> Paged<WorkerSummary>;
    }
    Jobs {
        write register_job(job: NewJob) -> Registered;
        read jobs(scopes: Vec<String>, page: Page) -> Paged<Job>;
        read job(name: FullName) -> Option<Job>;
    }
}

impl Providers for Gated {
    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> Step<'_, Vec<Option<(Provider, Look)>>> {
        self.look_at("find_answers", self.store.find_answers(questions))
    }

    fn register_provider(&self, provider: NewProvider) -> Write<ProviderRegistered> {
        self.write("register_provider", self.store.register_provider(provider))
    }

    fn providers(&self, filter: ProviderFilter, page: Page) -> Step<'_, Paged<Provider>> {
        self.step("providers", self.store.providers(filter, page))
    }

    fn find_providers(&self, names: Vec<FullName>) -> Step<'_, Vec<Option<Provider>>> {
        self.step("find_providers", self.store.find_providers(names))
    }

    fn newest_provider(&self, room: String, category: &'static str) -> Step<'_, Option<Provider>> {
        self.step(
            "newest_provider",
            self.store.newest_provider(room, category),
        )
    }

    fn provider(&self, provider: Uuid) -> Step<'_, Option<Provider>> {
        self.step("provider", self.store.provider(provider))
    }

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        self.write(
            "remove_provider",
            self.store.remove_provider(provider, user),
        )
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Write<Owned<Provider>> {
        self.write("touch_provider", self.store.touch_provider(provider, user))
    }
}
