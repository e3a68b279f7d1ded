//! The claim of a task: held until there is a task, and released when the task reached no worker.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::sleep;
use uuid::Uuid;
use wakeline_bus::Write;
use wakeline_store::Error as StoreError;
use wakeline_wake::Cause;
use wakeline_web::{CheckResult, DeliveryGuard, HoldOutcome, Timing, hold};

use super::{Jobs, OUTAGE_PAUSE, held_workers::HeldWorker};
use crate::{
    caller::Caller,
    error::Error,
    problem,
    task::{ClaimOutcome, Task},
    topic::{self, Wait},
    wakes,
};

/// When other claims have locked all pending tasks, they are done soon.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// How often a claim that is not held tries again then.
const BUSY_TRIES: usize = 20;
/// How often a release is tried while the store is away.
const RELEASE_TRIES: usize = 60;

/// The result of one claim.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum ClaimAttempt {
    Task(Claim),
    /// There is no pending task in these, the jobs of the worker.
    Nothing {
        jobs: Vec<Uuid>,
    },
    Busy,
}

/// The result of a held claim.
#[allow(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum HeldClaim {
    Task(Claim),
    /// The worker has other jobs by now than those whose tasks the claim waits for.
    OtherJobs(Vec<Uuid>),
}

impl Jobs {
    /// The task that has waited longest among those of the worker's jobs, held for at most `time`
    /// until there is one. While it is held, the worker needs no heartbeats of its own.
    pub async fn claim(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
        time: Duration,
    ) -> Result<HoldOutcome<Claim>, Error> {
        if time.is_zero() {
            return self.claim_now(caller, worker).await;
        }
        let began = tokio::time::Instant::now();
        let mut jobs: Vec<Uuid> = Vec::new();
        // From the first check that finds no task: before it, the worker may be another user's.
        let held_worker = OnceLock::new();
        let held_worker = &held_worker;
        loop {
            let keys: Vec<_> = std::iter::once(Wait::Worker(worker))
                .chain(jobs.iter().copied().map(Wait::Claim))
                .map(|wait| wait.key())
                .collect();
            let left = time.saturating_sub(began.elapsed());
            let mut was_held = false;
            let check = || {
                let (door, jobs) = (self.clone(), jobs.clone());
                let was_held = std::mem::replace(&mut was_held, true);
                async move {
                    let checked = door.look_for_task(caller, worker, &jobs, was_held).await;
                    if !matches!(checked, Ok(CheckResult::Found(HeldClaim::Task(_))) | Err(_)) {
                        held_worker.get_or_init(|| HeldWorker::new(&self.held_workers, worker));
                    }
                    checked
                }
            };
            let held = hold(&self.engine, topic::DOOR, &keys, left, check).await?;
            let mut timing = held.timing;
            timing.hold = began.elapsed();
            match held.value {
                Some(HeldClaim::Task(claim)) => {
                    // The first key is the worker's own.
                    let woken_for = held.key.and_then(|key| jobs.get(key.checked_sub(1)?));
                    self.pass_on(woken_for.copied(), &claim.task);
                    return Ok(HoldOutcome {
                        value: Some(claim),
                        timing,
                        key: held.key,
                    });
                }
                Some(HeldClaim::OtherJobs(others)) if !left.is_zero() => jobs = others,
                _ => {
                    return Ok(HoldOutcome {
                        value: None,
                        timing,
                        key: held.key,
                    });
                }
            }
        }
    }

    async fn claim_now(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
    ) -> Result<HoldOutcome<Claim>, Error> {
        let began = std::time::Instant::now();
        let mut value = None;
        for _ in 0..BUSY_TRIES {
            match self.take(caller, worker).await? {
                ClaimAttempt::Task(claim) => value = Some(claim),
                ClaimAttempt::Busy => {
                    sleep(BUSY_PAUSE).await;
                    continue;
                }
                ClaimAttempt::Nothing { .. } => {}
            }
            break;
        }
        let timing = Timing {
            hold: began.elapsed(),
            woken_by: None,
            store: began.elapsed(),
        };
        Ok(HoldOutcome {
            value,
            timing,
            key: None,
        })
    }

    /// A claim that was woken for a task of one job and took an older task of another passes the
    /// wake on to the next waiter of the first job. Only on this node: each node has woken a waiter
    /// of its own.
    fn pass_on(&self, woken_for: Option<Uuid>, task: &Task) {
        if let Some(job) = woken_for.filter(|job| *job != task.job) {
            self.engine
                .wake(&Wait::Claim(job).wake_one(), Cause::Notify);
        }
    }

    async fn look_for_task(
        self: Arc<Self>,
        caller: Caller,
        worker: Uuid,
        jobs: &[Uuid],
        was_held: bool,
    ) -> Result<CheckResult<HeldClaim>, Error> {
        Ok(match self.take(caller, worker).await {
            Ok(ClaimAttempt::Task(claim)) => CheckResult::Found(HeldClaim::Task(claim)),
            Ok(ClaimAttempt::Nothing { jobs: others }) if others != jobs => {
                CheckResult::Found(HeldClaim::OtherJobs(others))
            }
            Ok(ClaimAttempt::Nothing { .. }) => CheckResult::Nothing {
                recheck_after: None,
            },
            Ok(ClaimAttempt::Busy) => CheckResult::Nothing {
                recheck_after: Some(BUSY_PAUSE),
            },
            // A claim that is already held rides out an outage.
            Err(Error::Store(error)) if was_held && error.is_outage() => CheckResult::Nothing {
                recheck_after: Some(OUTAGE_PAUSE),
            },
            Err(error) => return Err(error),
        })
    }

    /// One claim. The guard is made by the follow-up, so that a claim whose caller has hung up is
    /// released.
    async fn take(self: &Arc<Self>, caller: Caller, worker: Uuid) -> Result<ClaimAttempt, Error> {
        let door = self.clone();
        let attempt = self.store.claim(worker, caller.id).map(move |claimed| {
            Ok(match claimed {
                ClaimOutcome::NoWorker => {
                    return Err(Error::problem(
                        &problem::WORKER_NOT_FOUND,
                        format!("Worker {worker} not found"),
                    ));
                }
                ClaimOutcome::NotOwner => {
                    return Err(Error::forbidden("Worker belongs to a different user"));
                }
                ClaimOutcome::Task(task) => {
                    door.events.task_changed(&task);
                    let guard = ClaimGuard {
                        task: task.id,
                        worker,
                        door,
                        is_delivered: false,
                    };
                    ClaimAttempt::Task(Claim { task, guard })
                }
                ClaimOutcome::Nothing { jobs } => ClaimAttempt::Nothing { jobs },
                ClaimOutcome::Busy => ClaimAttempt::Busy,
            })
        });
        attempt.commit(&self.bus).await?
    }

    /// Returns a task to the queue. There is no lease that ends: a task that is not released stays
    /// with the worker for as long as it sends heartbeats. So this tries again while the store is
    /// away, as one write, for which the end of the process waits.
    fn release(self: &Arc<Self>, task: Uuid, worker: Uuid) -> Write<()> {
        let door = self.clone();
        let run = async move {
            for _ in 0..RELEASE_TRIES {
                match door.store.unclaim(task, worker).commit(&door.bus).await {
                    Ok(Some(task)) => {
                        door.events.task_available(&task);
                        door.events.task_changed(&task);
                        return Ok(());
                    }
                    // The task was cancelled meanwhile, or its worker is gone.
                    Ok(None) => return Ok(()),
                    // Nothing was done. If that is not known, the worker may have claimed it again.
                    Err(StoreError::Unavailable(_) | StoreError::Overloaded) => {
                        sleep(OUTAGE_PAUSE).await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, %task, "a claim may not have been released");
                        return Ok(());
                    }
                }
            }
            tracing::warn!(%task, "a claim could not be released; the task stays with its worker");
            Ok(())
        };
        // Each attempt wakes the waiters itself.
        Write::new(topic::DOOR, run, wakes::nobody)
    }
}

/// A task on its way to its worker.
#[derive(Debug)]
pub struct Claim {
    pub task: Task,
    pub guard: ClaimGuard,
}

/// Releases the claim if it is dropped before the task was delivered.
#[derive(Debug)]
pub struct ClaimGuard {
    task: Uuid,
    worker: Uuid,
    door: Arc<Jobs>,
    is_delivered: bool,
}

impl DeliveryGuard for ClaimGuard {
    fn delivered(mut self) {
        self.is_delivered = true;
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        if !self.is_delivered && tokio::runtime::Handle::try_current().is_ok() {
            let release = self.door.release(self.task, self.worker);
            drop(release.commit(&self.door.bus));
        }
    }
}
