//! The server's own providers and jobs. It answers requests to providers of `@internal`, and works
//! on tasks of its jobs as a worker, so that they are found again when a node is lost.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use wakeline_web::DeliveryGuard;

use super::{Claim, Jobs, OUTAGE_PAUSE};
use crate::{
    caller::Caller,
    error::Error,
    job::{JobRegistration, NewJob},
    name::FullName,
    problem::{self, PROVIDER_EXECUTION_FAILED},
    provider::{NewProvider, Provider, ProviderRequest},
    task::{Status, Task},
};

/// Heartbeats within the time after which a worker is lost.
const BEATS: u32 = 3;

impl Jobs {
    /// Refuses a provider of `@internal` that this server does not run.
    pub(super) fn check_internal(&self, name: &FullName) -> Result<(), Error> {
        if self.internal.provider(name).is_some() {
            return Ok(());
        }
        Err(Error::problem(
            &problem::INTERNAL_JOB_NOT_CONFIGURED,
            format!("Internal provider '{name}' is registered but no executor is available"),
        ))
    }

    /// Answers a request itself.
    pub(super) fn run_internal(
        self: &Arc<Self>,
        provider: Arc<Provider>,
        request: ProviderRequest,
    ) {
        let Some(internal) = self.internal.provider(&provider.name).cloned() else {
            return;
        };
        let door = self.clone();
        tokio::spawn(async move {
            let params = serde_json::from_str(&request.params).unwrap_or_default();
            let (is_error, body) = match internal.read(params).await {
                Ok(bytes) => (false, Body::from(bytes)),
                Err(failure) => {
                    let detail = failure.to_string();
                    let document = Error::document(&PROVIDER_EXECUTION_FAILED, &detail);
                    (true, Body::from(document.text()))
                }
            };
            let upload = door.coming(body, is_error);
            let hash = request.key.hash;
            if let Err(error) = door.answered(&provider, hash, upload, None).await {
                tracing::warn!(%error, "an answer of the server's own provider could not be stored");
            }
        });
    }

    /// Registers the server's own providers, and works on the tasks of its jobs for ever.
    pub async fn run_internals(self: Arc<Self>, caller: Caller) {
        while let Err(error) = self.offer_internals(caller).await {
            tracing::warn!(%error, "the server's own providers could not be registered; trying again");
            sleep(OUTAGE_PAUSE).await;
        }
        if self.internal.jobs().next().is_none() {
            return;
        }
        loop {
            if let Err(error) = self.work(caller).await {
                tracing::warn!(%error, "the server's own worker failed and starts again");
            }
            if self.engine.is_draining() {
                return;
            }
            sleep(OUTAGE_PAUSE).await;
        }
    }

    async fn offer_internals(self: &Arc<Self>, caller: Caller) -> Result<(), Error> {
        for (name, provider) in self.internal.providers() {
            let new = NewProvider {
                name: name.clone(),
                schema: provider.schema().to_string(),
                content_type: provider.content_type().to_owned(),
                user: caller.id,
                is_superuser: true,
                worker: None,
                ttl: None,
            };
            self.put_provider(new).await?;
        }
        Ok(())
    }

    /// Works as one worker until it is lost.
    async fn work(self: &Arc<Self>, caller: Caller) -> Result<(), Error> {
        let worker = self.create_worker(caller).await?.id;
        for (name, job) in self.internal.jobs() {
            let new = NewJob {
                name: name.clone(),
                schema: job.schema().to_string(),
                max_retries: 0,
                user: caller.id,
                worker: Some(worker),
            };
            match self.store.register_job(new).commit(&self.bus).await? {
                JobRegistration::Done { .. } => {}
                refused => {
                    tracing::warn!(%name, ?refused, "a job of the server's own could not be registered");
                }
            }
        }
        let beating = async {
            loop {
                sleep(self.settings.worker_timeout / BEATS).await;
                match self.heartbeat(caller, worker).await {
                    Err(Error::Store(error)) => {
                        tracing::warn!(%error, "the server's own worker could not send its heartbeat");
                    }
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            }
        };
        let hands = (0..self.settings.internal_tasks.max(1)).map(|_| self.do_tasks(caller, worker));
        let ended: Result<(), Error> = tokio::select! {
            ended = beating => ended,
            ended = futures_util::future::try_join_all(hands) => ended.map(drop),
        };
        let _ = self.remove_worker(caller, worker).await;
        ended
    }

    /// Works on tasks until the worker is lost. Any other failure concerns one task, or passes: it
    /// must not fail the worker's other tasks.
    async fn do_tasks(self: &Arc<Self>, caller: Caller, worker: Uuid) -> Result<(), Error> {
        let time = self.settings.max_task_hold;
        loop {
            let done = match self.claim(caller, worker, time).await {
                Ok(held) => match held.value {
                    Some(Claim { task, guard }) => {
                        guard.delivered();
                        self.do_task(caller, task).await
                    }
                    None => Ok(()),
                },
                Err(lost @ Error::Problem { .. }) => return Err(lost),
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                if self.engine.is_draining() {
                    return Err(error);
                }
                tracing::warn!(%error, "the server's own worker failed at a task and continues");
                sleep(OUTAGE_PAUSE).await;
            }
        }
    }

    async fn do_task(self: &Arc<Self>, caller: Caller, task: Task) -> Result<(), Error> {
        if !self.put_into(caller, &task, Status::Running, None).await? {
            return Ok(());
        }
        let job =
            FullName::parse(&task.job_name).and_then(|name| self.internal.job(&name).cloned());
        let payload = serde_json::from_str(&task.payload).unwrap_or_default();
        let time: Duration = self.settings.internal_timeout;
        let done = match job {
            Some(job) => timeout(time, job.run(payload))
                .await
                .unwrap_or_else(|_| Err("Internal worker timeout".to_owned())),
            None => Err("This server does not run the job".to_owned()),
        };
        let (status, error) = match done {
            Ok(()) => (Status::Completed, None),
            // No text of PostgreSQL's has a NUL.
            Err(error) => (Status::Failed, Some(error.replace('\0', "\u{fffd}"))),
        };
        self.put_into(caller, &task, status, error).await?;
        Ok(())
    }

    /// Updates a task and rides out outages: a task that is not updated would keep its status for
    /// as long as the worker lives. `false`: the task was cancelled.
    async fn put_into(
        self: &Arc<Self>,
        caller: Caller,
        task: &Task,
        status: Status,
        error: Option<String>,
    ) -> Result<bool, Error> {
        let mut is_repeated = false;
        loop {
            let updated = self.update(caller, task.id, status, error.clone(), task.worker);
            match updated.await {
                Ok(_) => return Ok(true),
                // An update that was done before its answer was lost is not done a second time.
                Err(Error::Problem { .. }) if is_repeated => {
                    let known = self.store.task(task.id).await?;
                    return Ok(known.is_some_and(|known| known.status == status));
                }
                Err(Error::Problem { .. }) => return Ok(false),
                Err(Error::Store(error)) if error.is_outage() => {
                    is_repeated = true;
                    sleep(OUTAGE_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
