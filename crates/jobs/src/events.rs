//! What is told over Socket.IO, in zndraw-joblib's words. Nulls are kept: its models need them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use uuid::Uuid;
use wakeline_bus::Bus;

use crate::{
    name::FullName, provider::Request, socket::Sockets, task::Task, time::shown, topic::DOOR,
};

/// Tells those of this node, and the other nodes.
#[derive(Clone, Debug)]
pub struct Events {
    sockets: Arc<Sockets>,
    bus: Arc<Bus>,
}

/// An event as it travels between nodes.
#[derive(Debug, Serialize, Deserialize)]
struct Told<'a> {
    room: &'a str,
    event: &'a str,
    payload: &'a RawValue,
}

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
struct ProviderRequest<'a> {
    request_id: &'a str,
    provider_name: String,
    params: &'a str,
}

impl Events {
    /// Hears from now on what other nodes tell.
    #[must_use]
    pub fn new(sockets: Arc<Sockets>, bus: Arc<Bus>) -> Self {
        let here = sockets.clone();
        bus.subscribe(DOOR, move |text| {
            let Ok(told) = serde_json::from_str::<Told<'_>>(text) else {
                tracing::warn!("an event of another node that cannot be read");
                return;
            };
            here.emit(told.room, told.event, told.payload);
        });
        Self { sockets, bus }
    }

    /// To everybody in `room`, on every node. Made only where somebody may hear it.
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
            let told = Told {
                room,
                event,
                payload: &payload,
            };
            if let Ok(text) = serde_json::to_string(&told) {
                self.bus.broadcast(DOOR, text);
            }
        }
    }

    /// The room's jobs are others now.
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

    /// Whoever does the job may claim it.
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

/// The name of the event that asks a provider, and of the room where it listens.
pub const PROVIDER_REQUEST: &str = "provider_request";

#[must_use]
pub fn provider_room(name: &FullName) -> String {
    format!("providers:{name}")
}

/// What a provider is sent.
#[must_use]
pub fn provider_request(name: &FullName, request: &Request) -> Box<RawValue> {
    let payload = ProviderRequest {
        request_id: &request.key.hash,
        provider_name: name.to_string(),
        params: &request.params,
    };
    serde_json::value::to_raw_value(&payload).expect("plain data is JSON")
}
