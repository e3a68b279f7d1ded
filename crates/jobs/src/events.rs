//! The events of Socket.IO, in zndraw-joblib's form. Nulls are kept: its models need them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use uuid::Uuid;
use wakeline_bus::Bus;

use crate::{
    frames::FramesChange, name::FullName, provider::ProviderRequest, socket::Sockets, task::Task,
    time::shown, topic::DOOR,
};

/// Sends events to the sockets of this node, and to the other nodes.
#[derive(Clone, Debug)]
pub struct Events {
    sockets: Arc<Sockets>,
    bus: Arc<Bus>,
    receiver: Arc<ChangeReceiver>,
}

/// What takes the changes of frames that other nodes have committed.
#[derive(Default)]
struct ChangeReceiver(OnceLock<ReceiveChange>);

/// An event as it travels between nodes.
#[derive(Debug, Serialize, Deserialize)]
struct RoomEvent<'a> {
    room: &'a str,
    event: &'a str,
    payload: &'a RawValue,
}

/// A change of a room's frames as it travels: nodes bring it into order by its number.
#[derive(Debug, Serialize, Deserialize)]
struct NumberedChange {
    number: i64,
    change: FramesChange,
}

type ReceiveChange = Box<dyn Fn(i64, FramesChange) + Send + Sync>;

// Structs and no maps: their fields have an order.

#[derive(Serialize)]
struct TaskStatus<'a> {
    id: Uuid,
    name: &'a str,
    room_id: &'a str,
    status: &'static str,
    created_at: String,
    started_at: Option<String>,
    completed_at: Option<String>,
    queue_position: Option<i64>,
    worker_id: Option<Uuid>,
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct TaskAvailable<'a> {
    job_name: &'a str,
    room_id: &'a str,
    task_id: Uuid,
}

#[derive(Serialize)]
struct ResultReady<'a> {
    provider_name: String,
    request_hash: &'a str,
}

#[derive(Serialize)]
struct ProviderRequestEvent<'a> {
    request_id: &'a str,
    provider_name: String,
    params: &'a str,
}

impl fmt::Debug for ChangeReceiver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChangeReceiver").finish_non_exhaustive()
    }
}

impl Events {
    /// Receives the events of other nodes from now on.
    #[must_use]
    pub fn new(sockets: Arc<Sockets>, bus: Arc<Bus>) -> Self {
        let here = sockets.clone();
        let receiver = Arc::<ChangeReceiver>::default();
        let changes = receiver.clone();
        bus.subscribe(DOOR, move |text| {
            if let Ok(numbered) = serde_json::from_str::<NumberedChange>(text) {
                if let Some(receive) = changes.0.get() {
                    receive(numbered.number, numbered.change);
                }
                return;
            }
            let Ok(event_text) = serde_json::from_str::<RoomEvent<'_>>(text) else {
                tracing::warn!("an event of another node cannot be parsed");
                return;
            };
            here.emit(event_text.room, event_text.event, event_text.payload);
        });
        Self {
            sockets,
            bus,
            receiver,
        }
    }

    /// Called once: from now on `receive` gets the changes of other nodes.
    pub fn receive_changes(&self, receive: impl Fn(i64, FramesChange) + Send + Sync + 'static) {
        let is_first = self.receiver.0.set(Box::new(receive)).is_ok();
        assert!(is_first, "receive_changes is called once");
    }

    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.bus.is_alone()
    }

    /// To the sockets of this node.
    pub fn frames_changed_here(&self, change: &FramesChange) {
        let room = format!("room:{}", change.room_id);
        if let Ok(payload) = serde_json::value::to_raw_value(change) {
            self.sockets.emit(&room, "frames_invalidate", &payload);
        }
    }

    /// To the other nodes.
    pub fn send_frames_change(&self, number: i64, change: &FramesChange) {
        if self.bus.is_alone() {
            return;
        }
        let change = change.clone();
        if let Ok(text) = serde_json::to_string(&NumberedChange { number, change }) {
            self.bus.broadcast(DOOR, text);
        }
    }

    /// To all sockets in `room`, on every node. The payload is made only where a socket may get it.
    pub fn emit<P: Serialize>(&self, room: &str, event: &str, payload: impl FnOnce() -> P) {
        let has_company = !self.bus.is_alone();
        if !has_company && self.sockets.members(room) == 0 {
            return;
        }
        let Ok(payload) = serde_json::value::to_raw_value(&payload()) else {
            return;
        };
        self.sockets.emit(room, event, &payload);
        if has_company {
            let event_text = RoomEvent {
                room,
                event,
                payload: &payload,
            };
            if let Ok(text) = serde_json::to_string(&event_text) {
                self.bus.broadcast(DOOR, text);
            }
        }
    }

    /// The room's jobs have changed.
    pub fn jobs_changed(&self, room: &str) {
        self.emit(&format!("room:{room}"), "jobs_invalidate", || json!({}));
    }

    pub fn providers_changed(&self, room: &str) {
        self.emit(
            &format!("room:{room}"),
            "providers_invalidate",
            || json!({}),
        );
    }

    pub fn task_changed(&self, task: &Task) {
        self.emit(&format!("room:{}", task.room), "task_status_event", || {
            TaskStatus {
                id: task.id,
                name: &task.job_name,
                room_id: &task.room,
                status: task.status.name(),
                created_at: shown(task.created_at),
                started_at: task.started_at.map(shown),
                completed_at: task.completed_at.map(shown),
                queue_position: task.queue_position,
                worker_id: task.worker,
                error: task.error.as_deref(),
            }
        });
    }

    /// The workers of the job may claim the task.
    pub fn task_available(&self, task: &Task) {
        self.emit(&format!("jobs:{}", task.job_name), "task_available", || {
            TaskAvailable {
                job_name: &task.job_name,
                room_id: &task.room,
                task_id: task.id,
            }
        });
    }

    pub fn result_ready(&self, provider: &FullName, hash: &str) {
        let room = format!("room:{}", provider.room);
        self.emit(&room, "provider_result_ready", || ResultReady {
            provider_name: provider.to_string(),
            request_hash: hash,
        });
    }
}

/// The event that sends a request to a provider.
pub const PROVIDER_REQUEST: &str = "provider_request";

#[must_use]
pub fn provider_room(name: &FullName) -> String {
    format!("providers:{name}")
}

/// The payload of a request to a provider.
#[must_use]
pub fn provider_request(name: &FullName, request: &ProviderRequest) -> Box<RawValue> {
    let payload = ProviderRequestEvent {
        request_id: &request.key.hash,
        provider_name: name.to_string(),
        params: &request.params,
    };
    serde_json::value::to_raw_value(&payload).expect("plain data is JSON")
}
