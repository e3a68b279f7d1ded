//! A server of as much of zndraw-joblib's protocol as the load generator speaks.

mod providers;
mod tasks;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::fake_server::{Body, FakeServer, Gauge, Protocol, header, json as json_response, whole};

const METRICS: &str = "\
process_resident_memory_bytes 50000000
process_cpu_seconds_total 1.5
wakeline_statements_total{door=\"jobs\"} 7
";

pub(crate) type FakeJobsServer = FakeServer<JobsState>;

#[derive(Default)]
pub(crate) struct JobsState {
    next_id: AtomicUsize,
    pub(crate) workers: Mutex<HashSet<String>>,
    /// The name of each provider by its id.
    providers: Mutex<HashMap<String, String>>,
    /// By the name of the provider and the hash.
    pub(crate) results: Mutex<HashMap<(String, String), Bytes>>,
    dispatched: Mutex<HashMap<String, VecDeque<Value>>>,
    pub(crate) tasks: Mutex<Vec<Value>>,
    /// Counted up when a result or a task that a request waits for may be there.
    changes: watch::Sender<u64>,
    pub(crate) held: Gauge,
    pub(crate) held_claims: AtomicUsize,
    pub(crate) refuses_changes: AtomicBool,
    pub(crate) holds_no_claims: AtomicBool,
}

impl Protocol for JobsState {
    async fn respond(self: Arc<Self>, head: Parts, body: Bytes) -> Response<Body> {
        answer(&self, &head, body).await
    }
}

async fn answer(state: &JobsState, head: &Parts, body: Bytes) -> Response<Body> {
    let path = head.uri.path();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (&head.method, &*parts) {
        (_, ["livez"]) => return whole(StatusCode::OK, ""),
        (_, ["metrics"]) => return whole(StatusCode::OK, METRICS),
        (_, ["v1", "waits"]) => {
            return ok(&json!({"total": state.held.now(), "waits": []}));
        }
        (&Method::POST, ["v1", "auth", "guest"]) => {
            return ok(&json!({"access_token": "guest", "token_type": "bearer"}));
        }
        _ => {}
    }
    if header(head, "authorization") != Some("Bearer guest") {
        return whole(StatusCode::UNAUTHORIZED, "who are you?");
    }
    match (&head.method, &*parts) {
        (&Method::GET, ["dispatched", name]) => state.next_dispatched(name).await,
        (&Method::POST, ["v1", "joblib", "workers"]) => {
            let id = state.id("w");
            state.workers.lock().unwrap().insert(id.clone());
            ok(&json!({"id": id}))
        }
        (&Method::DELETE, ["v1", "joblib", "workers", id]) => {
            assert!(state.workers.lock().unwrap().remove(*id));
            whole(StatusCode::NO_CONTENT, "")
        }
        (&Method::PUT, ["v1", "joblib", "rooms", room, "providers"]) => {
            state.register_provider(room, &read(&body))
        }
        (&Method::GET, ["v1", "joblib", "rooms", _, "providers", name]) => {
            state.read_provider(name, head).await
        }
        (&Method::POST, ["v1", "joblib", "providers", id, "results"]) => {
            state.upload(id, head, body)
        }
        (&Method::PUT, ["v1", "joblib", "rooms", _, "jobs"]) => {
            let worker = read(&body)["worker_id"].as_str().unwrap().to_owned();
            assert!(state.workers.lock().unwrap().contains(&worker));
            ok(&json!({"id": "j"}))
        }
        (&Method::POST, ["v1", "joblib", "rooms", _, "tasks", job]) => state.submit(job),
        (&Method::POST, ["v1", "joblib", "tasks", "claim"]) => state.claim(head).await,
        (&Method::PATCH, ["v1", "joblib", "tasks", id]) => state.change(id, &read(&body)),
        (&Method::GET, ["v1", "joblib", "tasks", id]) => state.wait_for_task(id, head).await,
        _ => whole(StatusCode::NOT_FOUND, path.to_owned()),
    }
}

impl JobsState {
    fn id(&self, kind: &str) -> String {
        format!("{kind}-{}", self.next_id.fetch_add(1, Ordering::SeqCst))
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Asks `found` now and after each change, for as long as `Prefer` says.
    async fn hold<T>(&self, head: &Parts, found: impl Fn() -> Option<T>) -> Option<T> {
        let mut changes = self.changes.subscribe();
        if let Some(found) = found() {
            return Some(found);
        }
        let _held = self.held.enter();
        let deadline = tokio::time::Instant::now() + wait(head);
        loop {
            tokio::time::timeout_at(deadline, changes.changed())
                .await
                .ok()?
                .unwrap();
            if let Some(found) = found() {
                return Some(found);
            }
        }
    }
}

fn ok(body: &Value) -> Response<Body> {
    json_response(StatusCode::OK, body)
}

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn wait(head: &Parts) -> Duration {
    let seconds = header(head, "prefer").map_or(5, |prefer| {
        prefer.strip_prefix("wait=").unwrap().parse().unwrap()
    });
    Duration::from_secs(seconds)
}
