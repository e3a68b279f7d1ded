//! The service behind the sockets: accepts tokens that are names of users, and records its events.

use std::sync::{Mutex, OnceLock};

use futures_util::future::BoxFuture;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{RwLock, RwLockWriteGuard};
use uuid::Uuid;
use wakeline_jobs::{
    Error,
    caller::Caller,
    name::FullName,
    socket::{SocketBackend, SocketId, Sockets},
};
use wakeline_testkit::eventually;

pub(crate) const WORKER: Uuid = Uuid::from_u128(7);

#[derive(Default)]
pub(crate) struct RecordingBackend {
    events: Mutex<Vec<String>>,
    /// Locked while no decision is to be made.
    asking: RwLock<()>,
    /// If set, a socket that joins a provider's room is sent a first request at once.
    pub(crate) greets: OnceLock<std::sync::Weak<Sockets>>,
}

impl RecordingBackend {
    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }

    /// Until the guard is dropped, no decision is made.
    pub(crate) async fn block_decisions(&self) -> RwLockWriteGuard<'_, ()> {
        self.asking.write().await
    }

    pub(crate) async fn until_events(&self, what: &[&str]) {
        eventually(&format!("the events {what:?}"), async || {
            self.events() == what
        })
        .await;
    }

    fn hear(&self, what: String) {
        self.events.lock().unwrap().push(what);
    }
}

impl SocketBackend for RecordingBackend {
    fn connect(&self, token: Option<String>) -> BoxFuture<'_, Option<Caller>> {
        Box::pin(async move {
            let (id, is_superuser) = match token?.as_str() {
                "anna" => (1, false),
                "ben" => (2, false),
                "root" => (3, true),
                _ => return None,
            };
            let id = Uuid::from_u128(id);
            Some(Caller { id, is_superuser })
        })
    }

    fn may_serve_job(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        self.may_serve_provider(caller, name, worker)
    }

    /// Anna owns the jobs and providers of the room `anna`, with the one worker that exists.
    fn may_serve_provider(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let _answering = self.asking.read().await;
            if name.room == "nowhere" {
                return Err(wakeline_store::Error::Unavailable("a test".to_owned()).into());
            }
            let hers = caller.id == Uuid::from_u128(1) && name.room == "anna";
            Ok(caller.is_superuser || (hers && worker == Some(WORKER)))
        })
    }

    fn provider_joined(&self, name: FullName, socket: SocketId, _: Caller) {
        self.hear(format!("joined {name}"));
        if let Some(sockets) = self.greets.get().and_then(std::sync::Weak::upgrade) {
            let request = RawValue::from_string(r#"{"request_id":"first"}"#.to_owned());
            sockets.send(socket, "provider_request", &request.unwrap());
        }
    }

    fn provider_left(&self, name: FullName) {
        self.hear(format!("left {name}"));
    }

    fn room_join(
        &self,
        _: Caller,
        room: String,
        socket: SocketId,
    ) -> BoxFuture<'_, Result<Value, Value>> {
        Box::pin(async move {
            if room == "locked" {
                return Err(json!({ "status": 423 }));
            }
            Ok(json!({ "room_id": room, "session_id": socket.to_string(), "camera_key": null }))
        })
    }
}
