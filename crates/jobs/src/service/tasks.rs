//! A task's life but for its claim: submitted, done; and whoever waits for its end.

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
    page::{Page, Paged},
    problem,
    task::{NewTask, Status, Submitted, Task, TaskFilter, Update, Updated},
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
            // First of all whether there is one.
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
            if let Submitted::Done(task) = &submitted {
                if !is_internal {
                    door.events.task_available(task);
                }
                door.events.task_changed(task);
            }
            submitted
        });
        match submitted.commit(&self.bus).await? {
            Submitted::NoJob => Err(not_found(name)),
            Submitted::NoWorkers => Err(Error::problem(
                &problem::NO_WORKERS_AVAILABLE,
                format!("No workers available for job '{name}'"),
            )),
            Submitted::Done(task) => Ok(task),
        }
    }

    /// The task as it is when it has ended, or after `time`. Without a value the timing is of no
    /// hold: it had ended already, or nobody wanted to wait.
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
        let update = Update {
            task,
            user: caller.id,
            is_superuser: caller.is_superuser,
            status,
            error,
            worker,
        };
        let door = self.clone();
        let updated = self.store.update(update).map(move |updated| {
            if let Updated::Done { task, orphan } = &updated {
                door.events.task_changed(task);
                if let Some(orphan) = orphan {
                    door.events.jobs_changed(&orphan.room);
                }
            }
            updated
        });
        match updated.commit(&self.bus).await? {
            Updated::NotFound => Err(Error::problem(
                &problem::TASK_NOT_FOUND,
                format!("Task '{task}' not found"),
            )),
            Updated::Unclaimed => Err(Error::forbidden("Task not claimed by any worker")),
            Updated::Foreign => Err(Error::forbidden("Not authorized to update this task")),
            Updated::OtherWorkers => Err(Error::problem(
                &problem::NOT_THE_WORKERS_TASK,
                format!("Task '{task}' is not, or no more, with the worker that was named"),
            )),
            Updated::Stays(from) => Err(Error::problem(
                &problem::INVALID_TASK_TRANSITION,
                format!("Cannot transition from '{from}' to '{status}'"),
            )),
            Updated::Done { task, .. } => Ok(task),
        }
    }

    pub async fn room_tasks(
        &self,
        room: &str,
        status: Option<Status>,
        page: Page,
    ) -> Result<Paged<Task>, Error> {
        check_room(room)?;
        let filter = TaskFilter {
            room: room.to_owned(),
            job: None,
            status,
        };
        Ok(self.store.tasks(filter, page).await?)
    }

    pub async fn job_tasks(
        &self,
        room: &str,
        name: &str,
        status: Option<Status>,
        page: Page,
    ) -> Result<Paged<Task>, Error> {
        check_room(room)?;
        let filter = TaskFilter {
            room: room.to_owned(),
            job: Some(self.job(room, name).await?.id),
            status,
        };
        Ok(self.store.tasks(filter, page).await?)
    }
}
