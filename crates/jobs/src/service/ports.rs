//! What sockets, frames and users call of this service.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use uuid::Uuid;
use wakeline_web::Timing;

use super::Jobs;
use crate::{
    caller::Caller,
    error::Error,
    frames::{FailedReads, FramesChange, GroupAbandoned, ProviderReads, RoomEvents},
    name::{FullName, check_room},
    params::Params,
    problem,
    provider::{Answer, Provider},
    room::Room,
    socket::{SocketBackend, SocketId},
    users::WorkerRemover,
};

impl SocketBackend for Arc<Jobs> {
    fn connect(&self, token: Option<String>) -> BoxFuture<'_, Option<Caller>> {
        async move {
            let identified = self.users.identify_token(token.as_deref()).await;
            identified
                .inspect_err(|error| tracing::debug!(%error, "a socket was refused"))
                .ok()
        }
        .boxed()
    }

    fn may_serve_job(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            let Some(job) = self.store.job(name).await? else {
                return Ok(false);
            };
            if caller.is_superuser {
                return Ok(true);
            }
            match worker {
                Some(worker) if job.workers.contains(&worker) => {
                    Ok(self.store.worker_owner(worker).await? == Some(caller.id))
                }
                _ => Ok(false),
            }
        }
        .boxed()
    }

    fn may_serve_provider(
        &self,
        caller: Caller,
        name: FullName,
        _: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        async move {
            let found = self.store.find_providers(vec![name]).await?;
            let provider = found.into_iter().flatten().next();
            Ok(provider.is_some_and(|provider| caller.may_answer_for(provider.user)))
        }
        .boxed()
    }

    fn provider_joined(&self, name: FullName, socket: SocketId, caller: Caller) {
        self.provider_joins(name, socket, caller);
    }

    fn provider_left(&self, name: FullName) {
        self.provider_leaves(&name);
    }

    fn room_join(
        &self,
        _: Caller,
        room: String,
        socket: SocketId,
    ) -> BoxFuture<'_, Result<Value, Value>> {
        async move {
            let refused = |detail: String| {
                let document = Error::document(&problem::INVALID_ROOM_ID, &detail);
                serde_json::to_value(document).unwrap_or_default()
            };
            check_room(&room).map_err(|error| refused(error.to_string()))?;
            // A room of jobs only is joined too.
            let (mut found, mut trackers) = (None, Vec::new());
            if let Some(frames) = self.frames.get() {
                found = frames.room(room.clone()).await.ok();
                if found.is_some() {
                    trackers = frames.trackers(room.clone()).await.unwrap_or_default();
                }
            }
            let trackers = trackers.iter();
            let trackers = trackers.map(|tracker| (tracker.id.clone(), tracker.document()));
            let trackers: serde_json::Map<String, Value> = trackers.collect();
            Ok(json!({
                "room_id": room,
                "session_id": socket.to_string(),
                "step": 0,
                "frame_count": found.as_ref().map_or(0, Room::frame_count),
                "locked": found.is_some_and(|room| room.locked_by.is_some()),
                "camera_key": null,
                "default_camera": null,
                "progress_trackers": trackers,
            }))
        }
        .boxed()
    }
}

impl ProviderReads for Arc<Jobs> {
    fn ask(
        &self,
        caller: Caller,
        provider: Provider,
        params: Vec<(String, String)>,
        wait: Duration,
        group: GroupAbandoned,
    ) -> BoxFuture<'_, Result<(Answer, Option<Timing>), Error>> {
        async move {
            let name = provider.name.to_string();
            let params = Params::from_pairs(params);
            let begun = self
                .read_provider(caller, provider.name, &name, params, wait, group)
                .await?;
            let read = begun.end().await?;
            Ok((read.found.answer, read.timing))
        }
        .boxed()
    }

    fn frames_provider(&self, room: &str) -> BoxFuture<'_, Result<Option<Provider>, Error>> {
        let room = room.to_owned();
        async move {
            let category = super::providers::FRAMES;
            Ok(self.store.newest_provider(room, category).await?)
        }
        .boxed()
    }
}

impl RoomEvents for Arc<Jobs> {
    fn emit(&self, room_name: &str, event: &str, payload: Value) {
        self.events.emit(room_name, event, || payload);
    }

    fn emit_frames_change(&self, change: &FramesChange) {
        self.events.frames_changed_here(change);
    }

    fn send_frames_change(&self, number: i64, change: &FramesChange) {
        self.events.send_frames_change(number, change);
    }

    fn is_alone(&self) -> bool {
        self.events.is_alone()
    }
}

impl FailedReads for Arc<Jobs> {
    fn read_failed(
        &self,
        room: &str,
        provider: &str,
        hash: &str,
        detail: &str,
        caller: Caller,
    ) -> BoxFuture<'_, ()> {
        let (room, provider) = (room.to_owned(), provider.to_owned());
        let (hash, detail) = (hash.to_owned(), detail.to_owned());
        async move {
            let Ok(names) = self.name_in(&room, &provider) else {
                return;
            };
            for name in names {
                if let Err(error) = self.failed(caller, &name, &hash, &detail).await {
                    tracing::debug!(%error, "a provider's failure could not be stored for its readers");
                }
            }
        }
        .boxed()
    }
}

impl WorkerRemover for Arc<Jobs> {
    fn remove_worker_of_user(&self, worker: Uuid) -> BoxFuture<'_, ()> {
        async move {
            if let Err(error) = self.take_worker(worker, None).await {
                tracing::warn!(%error, "the worker of a deleted user stays until it is swept");
            }
        }
        .boxed()
    }
}
