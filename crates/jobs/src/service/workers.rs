//! Workers come, stay for as long as their heart beats, and go.

use std::{collections::BTreeSet, sync::Arc};

use uuid::Uuid;

use super::{Jobs, finished};
use crate::{
    caller::Caller,
    error::Error,
    name::{check_room, scopes},
    page::{Page, Paged},
    problem,
    task::{Loss, Status},
    topic::Wait,
    worker::{Owned, Worker, WorkerSummary},
};

impl Jobs {
    pub async fn create_worker(&self, caller: Caller) -> Result<Worker, Error> {
        Ok(self.store.create_worker(caller.id).await?)
    }

    pub async fn heartbeat(&self, caller: Caller, worker: Uuid) -> Result<Worker, Error> {
        let owned = self.store.heartbeat(worker, caller.id).await?;
        owner_only(owned, worker)
    }

    pub async fn remove_worker(
        self: &Arc<Self>,
        caller: Caller,
        worker: Uuid,
    ) -> Result<(), Error> {
        let door = self.clone();
        finished(async move {
            let owned = door.store.remove_worker(worker, caller.own()).await?;
            let loss = owner_only(owned, worker)?;
            door.lost(loss).await;
            Ok(())
        })
        .await
    }

    pub async fn workers(&self, page: Page) -> Result<Paged<WorkerSummary>, Error> {
        Ok(self.store.workers(page).await?)
    }

    pub async fn room_workers(
        &self,
        room: &str,
        page: Page,
    ) -> Result<Paged<WorkerSummary>, Error> {
        check_room(room)?;
        Ok(self.store.workers_of(scopes(room, true), page).await?)
    }

    /// Tells everybody what went with workers.
    pub(super) async fn lost(&self, loss: Loss) {
        // A claim that is held for one of them ends.
        let gone = loss.workers.iter();
        let mut wakes: Vec<_> = gone.map(|worker| Wait::Worker(*worker).wake()).collect();
        for task in &loss.tasks {
            wakes.push(Wait::Task(task.id).wake());
            if task.status == Status::Pending {
                wakes.push(Wait::Claim(task.job).wake_one());
            }
        }
        wakes.extend(
            loss.providers
                .iter()
                .map(|(name, _)| Wait::Provider(name.clone()).wake()),
        );
        self.bus.publish(&wakes);
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

fn owner_only<T>(owned: Owned<T>, worker: Uuid) -> Result<T, Error> {
    match owned {
        Owned::Done(done) => Ok(done),
        Owned::NotFound => Err(Error::problem(
            &problem::WORKER_NOT_FOUND,
            format!("Worker '{worker}' not found"),
        )),
        Owned::Foreign => Err(Error::forbidden("Worker belongs to different user")),
    }
}
