//! What the server does itself: it answers for providers of `@internal`, and works on tasks of its
//! jobs as any worker does, so that they are found again when a node is lost.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use tokio::time::{sleep, timeout};
use uuid::Uuid;
use wakeline_web::Parcel;

use super::{Claim, Jobs, OUTAGE_PAUSE};
use crate::{
    caller::Caller,
    error::Error,
    job::{NewJob, Registered},
    name::FullName,
    problem::{self, PROVIDER_EXECUTION_FAILED},
    provider::{NewProvider, Provider, ProviderRegistered, Request},
    results::Upload,
    task::{Status, Task},
};

/// Beats of the heart within the time after which a worker is lost.
const BEATS: u32 = 3;

impl Jobs {
    /// A provider of `@internal` must be one that this server runs.
    pub(super) fn check_internal(&self, name: &FullName) -> Result<(), Error> {
        if self.internal.provider(name).is_some() {
            return Ok(());
        }
        Err(Error::problem(
            &problem::INTERNAL_JOB_NOT_CONFIGURED,
            format!("Internal provider '{name}' is registered but no executor is available"),
        ))
    }

    /// Answers a question itself.
    pub(super) fn run_internal(self: &Arc<Self>, provider: Arc<Provider>, request: Request) {
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
            let upload = Upload {
                is_error,
                body,
                limit: door.settings.max_result,
                patience: door.settings.upload_patience,
            };
            let hash = request.key.hash;
            if let Err(error) = door.answered(&provider, hash, upload, None).await {
                tracing::warn!(%error, "an answer of the server's own could not be kept");
            }
        });
    }

    /// Offers what the server runs itself, and works on its tasks for ever.
    pub async fn run_internals(self: Arc<Self>, caller: Caller) {
        while let Err(error) = self.offer_internals(caller).await {
            tracing::warn!(%error, "the server's own providers are not offered yet");
            sleep(OUTAGE_PAUSE).await;
        }
        if self.internal.jobs().next().is_none() {
            return;
        }
        loop {
            if let Err(error) = self.work(caller).await {
                tracing::warn!(%error, "the server's own worker begins anew");
            }
            if self.engine.is_draining() {
                return;
            }
            sleep(OUTAGE_PAUSE).await;
        }
    }

    async fn offer_internals(&self, caller: Caller) -> Result<(), Error> {
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
            if let ProviderRegistered::Done { provider, .. } =
                self.store.register_provider(new).await?
            {
                self.provider_came(&provider).await;
            }
        }
        Ok(())
    }

    /// As one worker, until it is lost.
    async fn work(self: &Arc<Self>, caller: Caller) -> Result<(), Error> {
        let worker = self.store.create_worker(caller.id).await?.id;
        for (name, job) in self.internal.jobs() {
            let new = NewJob {
                name: name.clone(),
                schema: job.schema().to_string(),
                max_retries: 0,
                user: caller.id,
                worker: Some(worker),
            };
            if let Registered::Conflict = self.store.register_job(new).await? {
                tracing::warn!(%name, "another node runs this job with another schema");
            }
        }
        let beating = async {
            loop {
                sleep(self.settings.worker_timeout / BEATS).await;
                self.heartbeat(caller, worker).await?;
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

    async fn do_tasks(self: &Arc<Self>, caller: Caller, worker: Uuid) -> Result<(), Error> {
        loop {
            let held = self
                .claim(caller, worker, self.settings.max_task_hold)
                .await?;
            if let Some(Claim { task, receipt }) = held.value {
                receipt.delivered();
                self.do_task(caller, task).await?;
            }
        }
    }

    async fn do_task(self: &Arc<Self>, caller: Caller, task: Task) -> Result<(), Error> {
        let id = task.id;
        self.update(caller, id, Status::Running, None, task.worker)
            .await?;
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
            Err(error) => (Status::Failed, Some(error)),
        };
        match self.update(caller, id, status, error, task.worker).await {
            // It was cancelled meanwhile.
            Ok(_) | Err(Error::Problem { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
