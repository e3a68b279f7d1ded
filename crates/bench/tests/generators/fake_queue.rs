//! A server of as much of the queue's protocol as `bench hold` speaks.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::fake_server::{Body, FakeServer, Gauge, Protocol, json as json_response, whole};

const METRICS: &str = "\
process_resident_memory_bytes 50000000
process_cpu_seconds_total 1.5
wakeline_statements_total{door=\"queue\"} 7
";

pub(crate) type FakeQueueServer = FakeServer<QueueState>;

#[derive(Default)]
pub(crate) struct QueueState {
    queues: Mutex<HashMap<String, FakeQueue>>,
    pub(crate) held: Gauge,
    pub(crate) delivered: AtomicUsize,
    pub(crate) acked: AtomicUsize,
    pub(crate) refuses_pushes: AtomicBool,
}

#[derive(Default)]
struct FakeQueue {
    messages: VecDeque<Value>,
    waiters: VecDeque<oneshot::Sender<Value>>,
}

impl QueueState {
    pub(crate) fn queues(&self) -> usize {
        self.queues.lock().unwrap().len()
    }
}

impl Protocol for QueueState {
    async fn respond(self: Arc<Self>, head: Parts, body: Bytes) -> Response<Body> {
        let query = head.uri.query().unwrap_or_default();
        let (status, body) = match (&head.method, head.uri.path()) {
            (&Method::POST, "/api/v1/push") => push(&self, &serde_json::from_slice(&body).unwrap()),
            (&Method::POST, "/api/v1/ack") => {
                self.acked.fetch_add(1, Ordering::SeqCst);
                let acked = json!([{"index": 0, "success": true, "leaseReleased": true}]);
                (StatusCode::OK, acked)
            }
            (&Method::GET, "/v1/waits") => {
                let waits = json!({"total": self.held.now(), "waits": []});
                (StatusCode::OK, waits)
            }
            (&Method::GET, "/metrics") => return whole(StatusCode::OK, METRICS),
            (&Method::GET, path) => match path.strip_prefix("/api/v1/pop/queue/") {
                Some(queue) => pop(&self, queue, query).await,
                None => (StatusCode::NOT_FOUND, json!({"error": "Not Found"})),
            },
            _ => (StatusCode::NOT_FOUND, json!({"error": "Not Found"})),
        };
        match status {
            StatusCode::NO_CONTENT => whole(status, ""),
            _ => json_response(status, &body),
        }
    }
}

fn push(state: &QueueState, body: &Value) -> (StatusCode, Value) {
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

async fn pop(state: &QueueState, name: &str, query: &str) -> (StatusCode, Value) {
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
            let _held = state.held.enter();
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
