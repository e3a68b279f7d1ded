//! A task's life: submitted, claimed, done; and whoever waits for its end.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use wakeline_web::{Checked, Held, Timing, hold};

use super::{
    Jobs, OUTAGE_PAUSE, finished,
    jobs::{not_found, parse},
};
use crate::{
    caller::Caller,
    error::Error,
    name::check_room,
    page::{Page, Paged},
    problem,
    task::{Claimed, NewTask, Status, Submitted, Task, TaskFilter, Update, Updated},
    topic::{self, Wait},
};

/// When others have their hands on all that there is, they are done soon.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// How often a claim that is not held looks again then.
const BUSY_TRIES: usize = 20;

/// What a claim found.
enum Looked {
    Task(Task),
    /// The worker does other jobs by now than those that were waited for.
    OtherJobs(Vec<Uuid>),
}

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
        let (door, name) = (self.clone(), name.to_owned());
        finished(async move {
            match door.store.submit(task).await? {
                Submitted::NoJob => Err(not_found(&name)),
                Submitted::NoWorkers => Err(Error::problem(
                    &problem::NO_WORKERS_AVAILABLE,
                    format!("No workers available for job '{name}'"),
                )),
                Submitted::Done(task) => {
                    door.bus.publish(&[Wait::Claim(task.job).wake_one()]);
                    if !is_internal {
                        door.events.task_available(&task);
                    }
                    door.events.task_changed(&task);
                    Ok(task)
                }
            }
        })
        .await
    }

    /// The task that has waited longest among those of the worker's jobs, held for at most `time`
    /// until there is one.
    pub async fn claim(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
        time: Duration,
    ) -> Result<Held<Task>, Error> {
        if time.is_zero() {
            return self.claim_now(caller, worker).await;
        }
        let began = tokio::time::Instant::now();
        let mut jobs: Vec<Uuid> = Vec::new();
        loop {
            let places: Vec<_> = std::iter::once(Wait::Worker(worker))
                .chain(jobs.iter().copied().map(Wait::Claim))
                .map(|wait| wait.place())
                .collect();
            let left = time.saturating_sub(began.elapsed());
            let mut was_held = false;
            let check = || {
                let (door, jobs) = (self.clone(), jobs.clone());
                let was_held = std::mem::replace(&mut was_held, true);
                async move { door.look_for_task(caller, worker, &jobs, was_held).await }
            };
            let held = hold(&self.engine, topic::DOOR, &places, left, check).await?;
            let mut timing = held.timing;
            timing.hold = began.elapsed();
            match held.value {
                Some(Looked::Task(task)) => {
                    return Ok(Held {
                        value: Some(task),
                        timing,
                    });
                }
                Some(Looked::OtherJobs(others)) if !left.is_zero() => jobs = others,
                _ => {
                    return Ok(Held {
                        value: None,
                        timing,
                    });
                }
            }
        }
    }

    async fn claim_now(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
    ) -> Result<Held<Task>, Error> {
        let began = std::time::Instant::now();
        let mut value = None;
        for _ in 0..BUSY_TRIES {
            match self.take(caller, worker).await? {
                Claimed::Task(task) => value = Some(task),
                Claimed::Busy => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                    continue;
                }
                _ => {}
            }
            break;
        }
        let timing = Timing {
            hold: began.elapsed(),
            woken_by: None,
            store: began.elapsed(),
        };
        Ok(Held { value, timing })
    }

    async fn look_for_task(
        self: Arc<Self>,
        caller: Caller,
        worker: Uuid,
        jobs: &[Uuid],
        was_held: bool,
    ) -> Result<Checked<Looked>, Error> {
        Ok(match self.take(caller, worker).await {
            Ok(Claimed::Task(task)) => Checked::Found(Looked::Task(task)),
            Ok(Claimed::Nothing { jobs: others }) if others != jobs => {
                Checked::Found(Looked::OtherJobs(others))
            }
            Ok(Claimed::Busy) => Checked::Nothing {
                again: Some(BUSY_PAUSE),
            },
            Ok(_) => Checked::Nothing { again: None },
            // Whoever is already held sits the outage out.
            Err(Error::Store(error)) if was_held && error.is_outage() => Checked::Nothing {
                again: Some(OUTAGE_PAUSE),
            },
            Err(error) => return Err(error),
        })
    }

    /// One claim. It goes on when the caller hangs up, so that what it claims is known to all.
    async fn take(self: &Arc<Self>, caller: Caller, worker: Uuid) -> Result<Claimed, Error> {
        let door = self.clone();
        finished(async move {
            let claimed = door.store.claim(worker, caller.id).await?;
            match &claimed {
                Claimed::NoWorker => Err(Error::problem(
                    &problem::WORKER_NOT_FOUND,
                    format!("Worker {worker} not found"),
                )),
                Claimed::Foreign => Err(Error::forbidden("Worker belongs to a different user")),
                Claimed::Task(task) => {
                    door.bus.publish(&[Wait::Task(task.id).wake()]);
                    door.events.task_changed(task);
                    Ok(claimed)
                }
                Claimed::Nothing { .. } | Claimed::Busy => Ok(claimed),
            }
        })
        .await
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
        let place = Wait::Task(task).place();
        let check = || {
            let store = self.store.clone();
            async move {
                match store.task(task).await {
                    Ok(Some(task)) if !task.status.is_terminal() => {
                        Ok(Checked::Nothing { again: None })
                    }
                    Ok(ended) => Ok(Checked::Found(ended)),
                    Err(error) if error.is_outage() => Ok(Checked::Nothing {
                        again: Some(OUTAGE_PAUSE),
                    }),
                    Err(error) => Err(Error::Store(error)),
                }
            }
        };
        let places = std::slice::from_ref(&place);
        let held: Held<Option<Task>> = hold(&self.engine, topic::DOOR, places, time, check).await?;
        let seen = match held.value {
            Some(ended) => ended,
            None => self.store.task(task).await?,
        };
        Ok((seen.ok_or_else(not_found)?, Some(held.timing)))
    }

    pub async fn update(
        self: &Arc<Self>,
        caller: Caller,
        task: Uuid,
        status: Status,
        error: Option<String>,
    ) -> Result<Task, Error> {
        let update = Update {
            task,
            user: caller.id,
            is_superuser: caller.is_superuser,
            status,
            error,
        };
        let door = self.clone();
        finished(async move {
            match door.store.update(update).await? {
                Updated::NotFound => Err(Error::problem(
                    &problem::TASK_NOT_FOUND,
                    format!("Task '{task}' not found"),
                )),
                Updated::Unclaimed => Err(Error::forbidden("Task not claimed by any worker")),
                Updated::Foreign => Err(Error::forbidden("Not authorized to update this task")),
                Updated::Stays(from) => Err(Error::problem(
                    &problem::INVALID_TASK_TRANSITION,
                    format!("Cannot transition from '{from}' to '{status}'"),
                )),
                Updated::Done { task, orphan } => {
                    door.bus.publish(&[Wait::Task(task.id).wake()]);
                    door.events.task_changed(&task);
                    if let Some(orphan) = orphan {
                        door.events.jobs_changed(&orphan.room);
                    }
                    Ok(task)
                }
            }
        })
        .await
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
