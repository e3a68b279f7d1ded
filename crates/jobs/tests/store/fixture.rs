//! The fixture of a case: a store, two users, and short names for its calls.

use std::sync::Arc;

use uuid::Uuid;
use wakeline_jobs::{
    job::{Job, JobRegistration, NewJob},
    name::FullName,
    page::Page,
    provider::{NewProvider, Provider, ProviderRegistration},
    store::Store,
    task::{
        ClaimOutcome, LostWorkers, NewTask, Status, SubmitOutcome, SweepAges, SweepOutcome, Task,
        TaskFilter, TaskUpdate, UpdateOutcome,
    },
    worker::OwnerOutcome,
};
use wakeline_testkit::{CommitAlone, DatabaseKind};

use crate::database::Database;

pub(crate) const SECOND: i64 = 1_000_000;

/// Workers are lost after a minute; ended tasks are kept for an hour.
pub(crate) const TERMS: SweepAges = SweepAges {
    worker: 60 * SECOND,
    internal: 600 * SECOND,
    kept: 3_600 * SECOND,
    limit: 100,
};

pub(crate) const ALL: Page = Page {
    limit: Page::MAX_LIMIT,
    offset: 0,
};

pub(crate) struct Fixture {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) anna: Uuid,
    pub(crate) ben: Uuid,
}

impl Fixture {
    pub(crate) async fn open(kind: DatabaseKind) -> Self {
        let database = Database::open(kind).await;
        let (anna, ben) = (database.user(1).await, database.user(2).await);
        Self {
            store: database.store().await,
            database,
            anna,
            ben,
        }
    }

    /// A worker of Anna's.
    pub(crate) async fn worker(&self) -> Uuid {
        self.store.create_worker(self.anna).done().await.id
    }

    /// A worker of Anna's with this job.
    pub(crate) async fn worker_of(&self, job: &str) -> Uuid {
        self.worker_of_retried(job, 0).await
    }

    pub(crate) async fn worker_of_retried(&self, job: &str, max_retries: i32) -> Uuid {
        let worker = self.worker().await;
        self.job_with(job, worker, max_retries).await;
        worker
    }

    /// Registers the job with Anna's worker.
    pub(crate) async fn job(&self, name: &str, worker: Uuid) -> Job {
        self.job_with(name, worker, 0).await
    }

    pub(crate) async fn job_with(&self, name: &str, worker: Uuid, max_retries: i32) -> Job {
        let new = NewJob {
            max_retries,
            ..new_job(name, self.anna, Some(worker))
        };
        match self.store.register_job(new).done().await {
            JobRegistration::Done { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn known(&self, job: &str) -> Option<Job> {
        self.store.job(named(job)).await.unwrap()
    }

    /// A task of Ben's in the room "r".
    pub(crate) async fn submit(&self, job: &str) -> Task {
        self.submit_to("r", job).await
    }

    pub(crate) async fn submit_to(&self, room: &str, job: &str) -> Task {
        match self
            .store
            .submit(new_task(job, room, self.ben))
            .commit_alone()
            .await
        {
            Ok(SubmitOutcome::Done(task)) => task,
            other => panic!("{other:?}"),
        }
    }

    /// The id of the task that Anna's worker gets, if there is one.
    pub(crate) async fn claim(&self, worker: Uuid) -> Option<Uuid> {
        match self.store.claim(worker, self.anna).done().await {
            ClaimOutcome::Task(task) => Some(task.id),
            ClaimOutcome::Nothing { .. } => None,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn task(&self, task: Uuid) -> Task {
        self.store.task(task).await.unwrap().unwrap()
    }

    /// An update by a superuser.
    pub(crate) async fn set(&self, task: Uuid, status: Status) -> UpdateOutcome {
        self.update(task, self.ben, true, status).await
    }

    pub(crate) async fn update(
        &self,
        task: Uuid,
        user: Uuid,
        is_superuser: bool,
        status: Status,
    ) -> UpdateOutcome {
        let update = TaskUpdate {
            task,
            user,
            is_superuser,
            status,
            error: None,
            worker: None,
        };
        self.store.update(update).done().await
    }

    /// Claims, starts and completes the next task with Anna's worker.
    pub(crate) async fn complete(&self, worker: Uuid) -> Uuid {
        let task = self.claim(worker).await.expect("a task to be done");
        for status in [Status::Running, Status::Completed] {
            let updated = self.update(task, self.anna, false, status).await;
            assert!(matches!(updated, UpdateOutcome::Done { .. }), "{updated:?}");
        }
        task
    }

    pub(crate) async fn remove(&self, worker: Uuid) -> LostWorkers {
        match self.store.remove_worker(worker, None).done().await {
            OwnerOutcome::Done(loss) => loss,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn provider(&self, name: &str, worker: Option<Uuid>) -> Provider {
        let new = new_provider(name, self.anna, worker);
        match self.store.register_provider(new).done().await {
            ProviderRegistration::Done { provider, .. } => provider,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn sweep(&self, terms: SweepAges) -> SweepOutcome {
        self.store.sweep(terms).done().await
    }

    /// The ids and queue positions of a page of the room's tasks, newest first.
    pub(crate) async fn places(&self, room: &str, page: Page) -> Vec<(Uuid, Option<i64>)> {
        let tasks = self.store.tasks(of(room), page).await.unwrap().items;
        let shown = |task: &Task| (task.id, task.queue_position);
        tasks.iter().map(shown).collect()
    }
}

pub(crate) fn named(name: &str) -> FullName {
    FullName::parse(name).unwrap()
}

pub(crate) fn new_job(name: &str, user: Uuid, worker: Option<Uuid>) -> NewJob {
    NewJob {
        name: named(name),
        schema: "{}".to_owned(),
        max_retries: 0,
        user,
        worker,
    }
}

pub(crate) fn new_task(job: &str, room: &str, user: Uuid) -> NewTask {
    NewTask {
        id: Uuid::new_v4(),
        job: named(job),
        room: room.to_owned(),
        user,
        payload: r#"{"b": 1, "a": 2}"#.to_owned(),
        needs_worker: false,
    }
}

pub(crate) fn new_provider(name: &str, user: Uuid, worker: Option<Uuid>) -> NewProvider {
    NewProvider {
        name: named(name),
        schema: "{}".to_owned(),
        content_type: "application/json".to_owned(),
        user,
        is_superuser: false,
        worker,
        ttl: None,
    }
}

pub(crate) fn of(room: &str) -> TaskFilter {
    TaskFilter {
        room: room.to_owned(),
        job: None,
        status: None,
    }
}

pub(crate) fn page(limit: i64, offset: i64) -> Page {
    Page { limit, offset }
}
