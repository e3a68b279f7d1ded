//! Workers are created, send heartbeats, and are removed.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;
use wakeline_store::Error as StoreError;

use super::Jobs;
use crate::{
    caller::Caller,
    error::Error,
    name::{check_room, scopes},
    page::{ListPage, Page},
    problem,
    task::{LostWorkers, Status},
    worker::{OwnerOutcome, Worker, WorkerSummary},
};

impl Jobs {
    pub async fn create_worker(&self, caller: Caller) -> Result<Worker, Error> {
        let created = self.store.create_worker(caller.id);
        Ok(created.commit(&self.bus).await?)
    }

    pub async fn heartbeat(&self, caller: Caller, worker: Uuid) -> Result<Worker, Error> {
        let beaten = self.store.heartbeat(worker, caller.id);
        owner_only(beaten.commit(&self.bus).await?, worker)
    }

    pub async fn remove_worker(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
    ) -> Result<(), Error> {
        owner_only(self.take_worker(worker, caller.own()).await?, worker)
    }

    /// Removes a worker and sends the events of what was removed with it. With `user`, only a
    /// worker of theirs.
    pub(super) async fn take_worker(
        self: &Arc<Self>,
        worker: Uuid,
        user: Option<Uuid>,
    ) -> Result<OwnerOutcome<()>, StoreError> {
        let door = self.clone();
        let removed = self.store.remove_worker(worker, user);
        let removed = removed.then(async move |removed| match removed {
            OwnerOutcome::Done(loss) => {
                door.lost(loss).await;
                OwnerOutcome::Done(())
            }
            OwnerOutcome::NotFound => OwnerOutcome::NotFound,
            OwnerOutcome::NotOwner => OwnerOutcome::NotOwner,
        });
        removed.commit(&self.bus).await
    }

    pub async fn workers(&self, page: Page) -> Result<ListPage<WorkerSummary>, Error> {
        Ok(self.store.workers(page).await?)
    }

    pub async fn room_workers(
        &self,
        room: &str,
        page: Page,
    ) -> Result<ListPage<WorkerSummary>, Error> {
        check_room(room)?;
        Ok(self.store.workers_of(scopes(room, true), page).await?)
    }

    /// Sends the events of what was removed with workers, and forgets the answers of their
    /// providers.
    pub(super) async fn lost(&self, loss: LostWorkers) {
        for task in &loss.tasks {
            self.events.task_changed(task);
            if task.status == Status::Pending {
                self.events.task_available(task);
            }
        }
        let rooms: BTreeSet<&str> = loss.jobs.iter().map(|name| name.room.as_str()).collect();
        for room in rooms {
            self.events.jobs_changed(room);
        }
        self.providers_gone(&loss.providers).await;
    }
}

fn owner_only<T>(outcome: OwnerOutcome<T>, worker: Uuid) -> Result<T, Error> {
    outcome.done_or(
        Error::problem(
            &problem::WORKER_NOT_FOUND,
            format!("Worker '{worker}' not found"),
        ),
        "Worker belongs to different user",
    )
}
