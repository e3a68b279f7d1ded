//! A server that speaks just the shapes that `bench jobs` needs.

mod providers;
mod tasks;

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

const METRICS: &str = "\
process_resident_memory_bytes 50000000
process_cpu_seconds_total 1.5
wakeline_statements_total{door=\"jobs\"} 7
";

pub(crate) struct StandIn {
    pub(crate) url: String,
    pub(crate) state: Arc<State>,
}

#[derive(Default)]
pub(crate) struct State {
    next_id: AtomicUsize,
    pub(crate) workers: Mutex<HashSet<String>>,
    /// The name of each provider by its id.
    providers: Mutex<HashMap<String, String>>,
    /// By the name of the provider and the hash.
    pub(crate) results: Mutex<HashMap<(String, String), Bytes>>,
    dispatched: Mutex<HashMap<String, VecDeque<Value>>>,
    pub(crate) tasks: Mutex<Vec<Value>>,
    /// Counted up when something that is waited for may be there.
    changes: watch::Sender<u64>,
    held: AtomicUsize,
    pub(crate) most_held: AtomicUsize,
    pub(crate) held_claims: AtomicUsize,
    pub(crate) refuses_changes: AtomicBool,
    pub(crate) asks_only: AtomicBool,
}

type Answer = (StatusCode, Bytes);

impl StandIn {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { url, state }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| respond(Arc::clone(&state), request));
            auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service)
                .await
        });
    }
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let (status, body) = answer(&state, &head, body).await;
    let response = Response::builder().status(status);
    Ok(response.body(Full::new(body)).unwrap())
}

async fn answer(state: &State, head: &Parts, body: Bytes) -> Answer {
    let path = head.uri.path();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (&head.method, &*parts) {
        (_, ["livez"]) => return (StatusCode::OK, Bytes::new()),
        (_, ["metrics"]) => return (StatusCode::OK, METRICS.into()),
        (_, ["v1", "waits"]) => {
            let total = state.held.load(Ordering::SeqCst);
            return ok(json!({"total": total, "waits": []}));
        }
        (&Method::POST, ["v1", "auth", "guest"]) => {
            return ok(json!({"access_token": "guest", "token_type": "bearer"}));
        }
        _ => {}
    }
    if header(head, "authorization") != Some("Bearer guest") {
        return (StatusCode::UNAUTHORIZED, "who are you?".into());
    }
    match (&head.method, &*parts) {
        (&Method::GET, ["dispatched", name]) => state.next_dispatched(name).await,
        (&Method::POST, ["v1", "joblib", "workers"]) => {
            let id = state.id("w");
            state.workers.lock().unwrap().insert(id.clone());
            ok(json!({"id": id}))
        }
        (&Method::DELETE, ["v1", "joblib", "workers", id]) => {
            assert!(state.workers.lock().unwrap().remove(*id));
            (StatusCode::NO_CONTENT, Bytes::new())
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
            ok(json!({"id": "j"}))
        }
        (&Method::POST, ["v1", "joblib", "rooms", _, "tasks", job]) => state.submit(job),
        (&Method::POST, ["v1", "joblib", "tasks", "claim"]) => state.claim(head).await,
        (&Method::PATCH, ["v1", "joblib", "tasks", id]) => state.change(id, &read(&body)),
        (&Method::GET, ["v1", "joblib", "tasks", id]) => state.wait_for_task(id, head).await,
        _ => (StatusCode::NOT_FOUND, path.to_owned().into()),
    }
}

impl State {
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
        let _held = Held::new(self);
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

/// Counts a held request for as long as it is held, also when its client hangs up.
struct Held<'a>(&'a State);

impl<'a> Held<'a> {
    fn new(state: &'a State) -> Self {
        let held = state.held.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_held.fetch_max(held, Ordering::SeqCst);
        Self(state)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

fn ok(body: Value) -> Answer {
    (StatusCode::OK, body.to_string().into())
}

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

fn header<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    Some(head.headers.get(name)?.to_str().unwrap())
}

fn wait(head: &Parts) -> Duration {
    let seconds = header(head, "prefer").map_or(5, |prefer| {
        prefer.strip_prefix("wait=").unwrap().parse().unwrap()
    });
    Duration::from_secs(seconds)
}
