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
use wakeline_jobs::{
    job::{Job, NewJob, Registered},
    name::FullName,
    page::{Page, Paged},
    provider::{Key, NewProvider, Provider, ProviderFilter, ProviderRegistered, Request},
    results::{Glance, Kept, Look, Results, Upload},
    store::{Jobs, Providers, Step, Store, Tasks, Workers},
    task::{Claimed, Loss, NewTask, Submitted, Swept, Task, TaskFilter, Terms, Update, Updated},
    topic::Wait,
    worker::{Owned, Worker, WorkerSummary},
};
use wakeline_store::Error;

#[derive(Debug)]
pub(crate) struct Gated {
    store: Arc<dyn Store>,
    results: Arc<dyn Results>,
    /// Whether answers are looked for together with their providers, as in the default place.
    is_store: AtomicBool,
    /// Steps that fail once each.
    failing: Mutex<Vec<&'static str>>,
    steps: AtomicUsize,
    looks: AtomicUsize,
    /// Which look is held up, counted from one.
    held_up: AtomicUsize,
    had: Semaphore,
    gate: Semaphore,
}

impl Gated {
    pub(crate) fn new(store: Arc<dyn Store>, results: Arc<dyn Results>) -> Self {
        Self {
            is_store: AtomicBool::new(results.is_store()),
            store,
            results,
            failing: Mutex::default(),
            steps: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
            held_up: AtomicUsize::new(0),
            had: Semaphore::new(0),
            gate: Semaphore::new(0),
        }
    }

    /// As a place of its own, beside the store.
    pub(crate) fn stand_apart(&self) {
        self.is_store.store(false, Ordering::SeqCst);
    }

    /// How many steps were asked for since this was asked.
    pub(crate) fn steps(&self) -> usize {
        self.steps.swap(0, Ordering::SeqCst)
    }

    /// The next of these steps fails.
    pub(crate) fn fail(&self, step: &'static str) {
        self.failing.lock().unwrap().push(step);
    }

    pub(crate) fn has_failed(&self, step: &str) -> bool {
        !self.failing.lock().unwrap().contains(&step)
    }

    /// The look, or the claim, after so many more is held up.
    pub(crate) fn hold_up(&self, after: usize) {
        let next = self.looks.load(Ordering::SeqCst) + 1;
        self.held_up.store(next + after, Ordering::SeqCst);
    }

    /// What it found is known, and nobody has heard it.
    pub(crate) async fn is_held_up(&self) {
        self.had.acquire().await.unwrap().forget();
    }

    pub(crate) fn let_go(&self) {
        self.gate.add_permits(1);
    }

    fn fails(&self, step: &str) -> bool {
        let mut failing = self.failing.lock().unwrap();
        let at = failing.iter().position(|failing| *failing == step);
        at.map(|at| failing.swap_remove(at)).is_some()
    }

    fn step<'a, T: Send + 'a>(&'a self, name: &'static str, step: Step<'a, T>) -> Step<'a, T> {
        async move {
            self.steps.fetch_add(1, Ordering::SeqCst);
            if self.fails(name) {
                return Err(Error::Unavailable("a test".to_owned()));
            }
            step.await
        }
        .boxed()
    }

    /// A step whose answer may be held up.
    fn look_at<'a, T: Send + 'a>(&'a self, name: &'static str, step: Step<'a, T>) -> Step<'a, T> {
        async move {
            let seen = self.step(name, step).await;
            let number = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
            if number == self.held_up.load(Ordering::SeqCst) {
                self.had.add_permits(1);
                self.gate.acquire().await.unwrap().forget();
            }
            seen
        }
        .boxed()
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

    fn put(&self, key: Key, upload: Upload, ttl: Duration) -> Step<'_, Kept> {
        self.step("put", self.results.put(key, upload, ttl))
    }

    /// If it fails, it is done and nobody knows.
    fn begin(&self, request: Request, ttl: Duration) -> Step<'_, bool> {
        async move {
            self.steps.fetch_add(1, Ordering::SeqCst);
            let begun = self.results.begin(request, ttl).await;
            if self.fails("begin") {
                return Err(Error::OutcomeUnknown("a test".to_owned()));
            }
            begun
        }
        .boxed()
    }

    fn end(&self, key: Key, token: Option<Uuid>) -> Step<'_, ()> {
        self.step("end", self.results.end(key, token))
    }

    fn in_flight(&self, provider: Uuid, version: i64) -> Step<'_, Vec<Request>> {
        self.step("in_flight", self.results.in_flight(provider, version))
    }

    fn forget(&self, provider: Uuid, version: Option<i64>) -> Step<'_, ()> {
        self.step("forget", self.results.forget(provider, version))
    }

    fn sweep(&self) -> Step<'_, Option<Duration>> {
        self.step("sweep_results", self.results.sweep())
    }
}

impl Tasks for Gated {
    fn claim(&self, worker: Uuid, user: Uuid) -> Step<'_, Claimed> {
        self.look_at("claim", self.store.claim(worker, user))
    }

    fn submit(&self, task: NewTask) -> Step<'_, Submitted> {
        self.step("submit", self.store.submit(task))
    }

    fn unclaim(&self, task: Uuid, worker: Uuid) -> Step<'_, Option<Task>> {
        self.step("unclaim", self.store.unclaim(task, worker))
    }

    fn task(&self, task: Uuid) -> Step<'_, Option<Task>> {
        self.step("task", self.store.task(task))
    }

    fn update(&self, update: Update) -> Step<'_, Updated> {
        self.step("update", self.store.update(update))
    }

    fn tasks(&self, filter: TaskFilter, page: Page) -> Step<'_, Paged<Task>> {
        self.step("tasks", self.store.tasks(filter, page))
    }

    fn ready(&self, waits: Vec<Wait>) -> Step<'_, Vec<Wait>> {
        self.step("ready", self.store.ready(waits))
    }
}

macro_rules! as_the_store_does {
    ($($trait:ident { $(fn $step:ident($($name:ident: $type:ty),*) -> $answer:ty;)+ })+) => {
        $(impl $trait for Gated {
            $(fn $step(&self, $($name: $type),*) -> Step<'_, $answer> {
                self.step(stringify!($step), self.store.$step($($name),*))
            })+
        })+
    };
}

as_the_store_does! {
    Workers {
        fn create_worker(user: Uuid) -> Worker;
        fn heartbeat(worker: Uuid, user: Uuid) -> Owned<Worker>;
        fn worker_owner(worker: Uuid) -> Option<Uuid>;
        fn remove_worker(worker: Uuid, user: Option<Uuid>) -> Owned<Loss>;
        fn workers(page: Page) -> Paged<WorkerSummary>;
        fn workers_of(scopes: Vec<String>, page: Page) -> Paged<WorkerSummary>;
        fn sweep(terms: Terms) -> Swept;
    }
    Jobs {
        fn register_job(job: NewJob) -> Registered;
        fn jobs(scopes: Vec<String>, page: Page) -> Paged<Job>;
        fn job(name: FullName) -> Option<Job>;
    }
}

impl Providers for Gated {
    fn find_answers(
        &self,
        questions: Vec<(FullName, String)>,
    ) -> Step<'_, Vec<Option<(Provider, Look)>>> {
        self.look_at("find_answers", self.store.find_answers(questions))
    }

    fn register_provider(&self, provider: NewProvider) -> Step<'_, ProviderRegistered> {
        self.step("register_provider", self.store.register_provider(provider))
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

    fn remove_provider(&self, provider: Uuid, user: Option<Uuid>) -> Step<'_, Owned<Provider>> {
        self.step(
            "remove_provider",
            self.store.remove_provider(provider, user),
        )
    }

    fn touch_provider(&self, provider: Uuid, user: Option<Uuid>) -> Step<'_, Owned<Provider>> {
        self.step("touch_provider", self.store.touch_provider(provider, user))
    }
}
