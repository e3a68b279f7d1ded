//! A model of the store in memory, as simple as possible.

use std::collections::BTreeMap;

use uuid::Uuid;
use wakeline_jobs::task::Status;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: Uuid,
    pub(crate) job: usize,
    pub(crate) user: Uuid,
    pub(crate) status: Status,
    pub(crate) worker: Option<Uuid>,
    pub(crate) error: Option<String>,
    retries: i32,
}

/// The outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelOutcome {
    NotClaimed,
    NotOwner,
    NoSuchTransition(Status),
    Done { is_orphan: bool },
}

#[derive(Debug)]
pub(crate) struct Model {
    /// The owner of each worker.
    pub(crate) workers: BTreeMap<Uuid, Uuid>,
    /// The workers of each job; `None` while the job does not exist.
    pub(crate) jobs: Vec<Option<Vec<Uuid>>>,
    /// Retries of each job.
    retries: Vec<i32>,
    /// Oldest first.
    pub(crate) tasks: Vec<Task>,
}

impl Model {
    pub(crate) fn new(retries: &[i32]) -> Self {
        Self {
            workers: BTreeMap::new(),
            jobs: vec![None; retries.len()],
            retries: retries.to_vec(),
            tasks: Vec::new(),
        }
    }

    /// Returns whether the job is new.
    pub(crate) fn register(&mut self, job: usize, worker: Uuid) -> bool {
        let is_new = self.jobs[job].is_none();
        let workers = self.jobs[job].get_or_insert_default();
        if !workers.contains(&worker) {
            workers.push(worker);
        }
        is_new
    }

    pub(crate) fn submit(&mut self, id: Uuid, job: usize, user: Uuid) -> bool {
        if self.jobs[job].is_none() {
            return false;
        }
        self.tasks.push(Task {
            id,
            job,
            user,
            status: Status::Pending,
            worker: None,
            error: None,
            retries: 0,
        });
        true
    }

    pub(crate) fn claim(&mut self, worker: Uuid) -> Option<Uuid> {
        let jobs = &self.jobs;
        let does = |job: usize| jobs[job].as_ref().is_some_and(|its| its.contains(&worker));
        let mut tasks = self.tasks.iter_mut();
        let task = tasks.find(|task| task.status == Status::Pending && does(task.job))?;
        task.status = Status::Claimed;
        task.worker = Some(worker);
        Some(task.id)
    }

    pub(crate) fn unclaim(&mut self, index: usize, worker: Uuid) -> bool {
        let task = &mut self.tasks[index];
        let is_its = task.status == Status::Claimed && task.worker == Some(worker);
        if is_its {
            task.status = Status::Pending;
            task.worker = None;
        }
        is_its
    }

    pub(crate) fn update(
        &mut self,
        index: usize,
        user: Uuid,
        is_superuser: bool,
        to: Status,
    ) -> ModelOutcome {
        let owner = |worker| self.workers.get(&worker).copied();
        let task = &mut self.tasks[index];
        let from = task.status;
        let takes_back = from == Status::Pending && to == Status::Cancelled && task.user == user;
        if !is_superuser && !takes_back {
            match task.worker {
                None => return ModelOutcome::NotClaimed,
                Some(worker) if owner(worker) != Some(user) => return ModelOutcome::NotOwner,
                Some(_) => {}
            }
        }
        if !from.leads_to(to) {
            return ModelOutcome::NoSuchTransition(from);
        }
        task.status = to;
        let job = task.job;
        ModelOutcome::Done {
            is_orphan: to.is_terminal() && self.orphan(job),
        }
    }

    /// Returns the lost tasks of the worker.
    pub(crate) fn remove(&mut self, worker: Uuid) -> Vec<Uuid> {
        self.workers.remove(&worker);
        let mut lost = Vec::new();
        let mut touched = Vec::new();
        for task in &mut self.tasks {
            let is_held = matches!(task.status, Status::Claimed | Status::Running);
            if task.worker != Some(worker) || !is_held {
                continue;
            }
            lost.push(task.id);
            touched.push(task.job);
            task.worker = None;
            if task.retries < self.retries[task.job] {
                task.retries += 1;
                task.status = Status::Pending;
            } else {
                task.status = Status::Failed;
                task.error = Some("Worker disconnected".to_owned());
            }
        }
        for (number, workers) in self.jobs.iter_mut().enumerate() {
            let Some(workers) = workers else { continue };
            if workers.contains(&worker) {
                workers.retain(|its| *its != worker);
                touched.push(number);
            }
        }
        for job in touched {
            self.orphan(job);
        }
        lost
    }

    /// The queue position from 1 on, while the task is pending.
    pub(crate) fn place(&self, index: usize) -> Option<i64> {
        let task = &self.tasks[index];
        let before = self.tasks[..index].iter();
        let before =
            before.filter(|other| other.job == task.job && other.status == Status::Pending);
        (task.status == Status::Pending).then(|| i64::try_from(before.count()).unwrap() + 1)
    }

    fn orphan(&mut self, job: usize) -> bool {
        let is_wanted = self
            .tasks
            .iter()
            .any(|task| task.job == job && task.status == Status::Pending);
        let is_done = self.jobs[job].as_ref().is_none_or(|its| !its.is_empty());
        if is_wanted || is_done {
            return false;
        }
        self.jobs[job] = None;
        true
    }
}
