//! Tasks are submitted and updated, and callers wait for their end. Claims are in
//! [`super::claims`].

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_web::{CheckResult, HoldOutcome, Timing, hold};

use super::{
    Jobs, OUTAGE_PAUSE,
    jobs::{not_found, parse},
};
use crate::{
    caller::Caller,
    error::Error,
    name::check_room,
    page::{ListPage, Page},
    problem,
    task::{NewTask, Status, SubmitOutcome, Task, TaskFilter, TaskUpdate, UpdateOutcome},
    topic::{self, Wait},
};

impl Jobs {
    pub async fn submit(
        self: &Arc<Self>,
        caller: Caller,
        room: &str,
        name: &str,
        payload: String,
    ) -> Result<Task, Error> {
        check_room(room)?;
        let job = parse(name)?;
        let is_internal = job.is_internal();
        if is_internal && self.internal.job(&job).is_none() {
            // First: a job that is not registered is not found.
            self.job(room, name).await?;
            return Err(Error::problem(
                &problem::INTERNAL_JOB_NOT_CONFIGURED,
                format!("Internal job '{name}' is registered but no executor is available"),
            ));
        }
        let task = NewTask {
            id: Uuid::new_v4(),
            job,
            room: room.to_owned(),
            user: caller.id,
            payload,
            needs_worker: self.settings.require_workers && !is_internal,
        };
        let door = self.clone();
        let submitted = self.store.submit(task).map(move |submitted| {
            if let SubmitOutcome::Done(task) = &submitted {
                if !is_internal {
                    door.events.task_available(task);
                }
                door.events.task_changed(task);
            }
            submitted
        });
        match submitted.commit(&self.bus).await? {
            SubmitOutcome::NoJob => Err(not_found(name)),
            SubmitOutcome::NoWorkers => Err(Error::problem(
                &problem::NO_WORKERS_AVAILABLE,
                format!("No workers available for job '{name}'"),
            )),
            SubmitOutcome::Done(task) => Ok(task),
        }
    }

    /// Returns the task as it is when it has ended, or after `time`. There is no timing if nothing
    /// was held: the task had ended already, or `time` is zero.
    pub async fn task(
        self: &Arc<Self>,
        task: Uuid,
        time: Duration,
    ) -> Result<(Task, Option<Timing>), Error> {
        let not_found = || {
            let text = format!("Task '{task}' not found");
            Error::problem(&problem::TASK_NOT_FOUND, text)
        };
        let known = self.store.task(task).await?.ok_or_else(not_found)?;
        if time.is_zero() || known.status.is_terminal() {
            return Ok((known, None));
        }
        let key = Wait::Task(task).key();
        let check = || {
            let store = self.store.clone();
            async move {
                match store.task(task).await {
                    Ok(Some(task)) if !task.status.is_terminal() => Ok(CheckResult::Nothing {
                        recheck_after: None,
                    }),
                    Ok(ended) => Ok(CheckResult::Found(ended)),
                    Err(error) if error.is_outage() => Ok(CheckResult::Nothing {
                        recheck_after: Some(OUTAGE_PAUSE),
                    }),
                    Err(error) => Err(Error::Store(error)),
                }
            }
        };
        let keys = std::slice::from_ref(&key);
        let held: HoldOutcome<Option<Task>> =
            hold(&self.engine, topic::DOOR, keys, time, check).await?;
        let seen = match held.value {
            Some(ended) => ended,
            None => self.store.task(task).await?,
        };
        let seen = seen.ok_or_else(|| not_found().held(held.timing))?;
        Ok((seen, Some(held.timing)))
    }

    pub async fn update(
        self: &Arc<Self>,
        caller: Caller,
        task: Uuid,
        status: Status,
        error: Option<String>,
        worker: Option<Uuid>,
    ) -> Result<Task, Error> {
        let update = TaskUpdate {
            task,
            user: caller.id,
            is_superuser: caller.is_superuser,
            status,
            error,
            worker,
        };
        let door = self.clone();
        let updated = self.store.update(update).map(move |updated| {
            if let UpdateOutcome::Done { task, orphan } = &updated {
                door.events.task_changed(task);
                if let Some(orphan) = orphan {
                    door.events.jobs_changed(&orphan.room);
                }
            }
            updated
        });
        match updated.commit(&self.bus).await? {
            UpdateOutcome::NotFound => Err(Error::problem(
                &problem::TASK_NOT_FOUND,
                format!("Task '{task}' not found"),
            )),
            UpdateOutcome::NotClaimed => Err(Error::forbidden("Task not claimed by any worker")),
            UpdateOutcome::NotOwner => Err(Error::forbidden("Not authorized to update this task")),
            UpdateOutcome::WrongWorker => Err(Error::problem(
                &problem::NOT_THE_WORKERS_TASK,
                format!("Task '{task}' is not, or no more, with the worker that was named"),
            )),
            UpdateOutcome::NoSuchTransition(from) => Err(Error::problem(
                &problem::INVALID_TASK_TRANSITION,
                format!("Cannot transition from '{from}' to '{status}'"),
            )),
            UpdateOutcome::Done { task, .. } => Ok(task),
        }
    }

    /// The room's tasks, or those of one of its jobs.
    pub async fn tasks(
        &self,
        room: &str,
        job: Option<&str>,
        status: Option<Status>,
        page: Page,
    ) -> Result<ListPage<Task>, Error> {
        check_room(room)?;
        let job = match job {
            Some(name) => Some(self.job(room, name).await?.id),
            None => None,
        };
        let filter = TaskFilter {
            room: room.to_owned(),
            job,
            status,
        };
        Ok(self.store.tasks(filter, page).await?)
    }
}
