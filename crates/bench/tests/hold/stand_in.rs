//! A server that speaks just the shapes that `bench hold` needs.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const METRICS: &str = "\
process_resident_memory_bytes 50000000
process_cpu_seconds_total 1.5
wakeline_statements_total{door=\"queue\"} 7
";

pub(crate) struct StandIn {
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    queues: Mutex<HashMap<String, Queue>>,
    held: AtomicUsize,
    most_held: AtomicUsize,
    delivered: AtomicUsize,
    acked: AtomicUsize,
    connections: AtomicUsize,
    refuses_pushes: AtomicBool,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<Value>,
    waiters: VecDeque<oneshot::Sender<Value>>,
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { url, state }
    }

    pub(crate) fn most_held(&self) -> usize {
        self.state.most_held.load(Ordering::SeqCst)
    }

    pub(crate) fn delivered(&self) -> usize {
        self.state.delivered.load(Ordering::SeqCst)
    }

    pub(crate) fn acked(&self) -> usize {
        self.state.acked.load(Ordering::SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn queues(&self) -> usize {
        self.state.queues.lock().unwrap().len()
    }

    pub(crate) fn refuse_pushes(&self) {
        self.state.refuses_pushes.store(true, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        state.connections.fetch_add(1, Ordering::SeqCst);
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&state), request));
            auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(socket), service)
                .await
        });
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let (status, body) = match (head.method, head.uri.path()) {
        (Method::POST, "/api/v1/push") => push(&state, &read(body).await),
        (Method::POST, "/api/v1/ack") => {
            state.acked.fetch_add(1, Ordering::SeqCst);
            (
                StatusCode::OK,
                json!([{"index": 0, "success": true, "leaseReleased": true}]),
            )
        }
        (Method::GET, "/v1/waits") => (
            StatusCode::OK,
            json!({"total": state.held.load(Ordering::SeqCst), "waits": []}),
        ),
        (Method::GET, "/metrics") => return Ok(Response::new(Full::new(METRICS.into()))),
        (Method::GET, path) => match path.strip_prefix("/api/v1/pop/queue/") {
            Some(queue) => pop(&state, queue, &query).await,
            None => (StatusCode::NOT_FOUND, json!({"error": "Not Found"})),
        },
        _ => (StatusCode::NOT_FOUND, json!({"error": "Not Found"})),
    };
    let body = if status == StatusCode::NO_CONTENT {
        String::new()
    } else {
        body.to_string()
    };
    Ok(Response::builder()
        .status(status)
        .body(Full::new(body.into()))
        .unwrap())
}

async fn read(body: Incoming) -> Value {
    serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
}

fn push(state: &State, body: &Value) -> (StatusCode, Value) {
    if state.refuses_pushes.load(Ordering::SeqCst) {
        return (
            StatusCode::INSUFFICIENT_STORAGE,
            json!({"error": "no room"}),
        );
    }
    let mut queues = state.queues.lock().unwrap();
    let mut results = Vec::new();
    for (index, item) in body["items"].as_array().unwrap().iter().enumerate() {
        let name = item["queue"].as_str().unwrap();
        let queue = queues.entry(name.to_owned()).or_default();
        let mut message = item.clone();
        while let Some(waiter) = queue.waiters.pop_front() {
            match waiter.send(message) {
                Ok(()) => {
                    message = Value::Null;
                    break;
                }
                Err(gone) => message = gone,
            }
        }
        if !message.is_null() {
            queue.messages.push_back(message);
        }
        results.push(
            json!({"index": index, "message_id": "m", "transaction_id": "t",
            "queueName": name, "status": "queued"}),
        );
    }
    (StatusCode::CREATED, Value::Array(results))
}

async fn pop(state: &State, name: &str, query: &str) -> (StatusCode, Value) {
    let parameter = |key: &str| {
        query
            .split('&')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
    };
    assert_eq!(
        (parameter("wait"), parameter("batch")),
        (Some("true"), Some("1"))
    );
    let timeout = Duration::from_millis(parameter("timeout").unwrap().parse().unwrap());
    let lease = if parameter("autoAck") == Some("true") {
        ""
    } else {
        "l-1"
    };

    let waiter = {
        let mut queues = state.queues.lock().unwrap();
        let queue = queues.entry(name.to_owned()).or_default();
        match queue.messages.pop_front() {
            Some(message) => Err(message),
            None => {
                let (sender, receiver) = oneshot::channel();
                queue.waiters.push_back(sender);
                Ok(receiver)
            }
        }
    };
    let item = match waiter {
        Err(message) => message,
        Ok(receiver) => {
            let _held = Held::new(state);
            match tokio::time::timeout(timeout, receiver).await {
                Ok(Ok(message)) => message,
                _ => return (StatusCode::NO_CONTENT, Value::Null),
            }
        }
    };
    state.delivered.fetch_add(1, Ordering::SeqCst);
    let partition = item["partition"].as_str().unwrap_or("Default");
    let message = json!({"id": "m", "transactionId": "t", "traceId": null,
        "data": item["payload"], "producerSub": null, "createdAt": "2026-11-15T23:45:24.631282Z",
        "partitionId": partition, "partition": partition, "leaseId": lease,
        "consumerGroup": "__QUEUE_MODE__"});
    let popped = json!({"success": true, "queue": name, "partition": partition,
        "partitionId": partition, "leaseId": lease, "consumerGroup": "__QUEUE_MODE__",
        "messages": [message], "partitionsClaimed": 1});
    (StatusCode::OK, popped)
}

/// Counts a held pop for as long as it is held, also when its client hangs up.
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
