//! How long a lease lasts, as it is shown.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::Request;
use serde_json::{Value, json};
use tower::ServiceExt;
use wakeline_bus::Bus;
use wakeline_queue::{Limits, Queue};
use wakeline_wake::Engine;

use crate::fixture::Fixture;

/// The routes of a server whose `queue.lease` is so many seconds.
fn server(fixture: &Fixture, lease: u64) -> Router {
    let engine = Engine::new(wakeline_wake::Limits::default());
    let limits = Limits {
        lease: Duration::from_secs(lease),
        ..Limits::default()
    };
    let bus = Bus::local(engine.clone());
    let door: Arc<Queue> = Queue::new(fixture.store.clone(), engine, bus, limits, None);
    wakeline_queue::http::router(door).split_for_parts().0
}

async fn ask(server: &Router, request: Request<Body>) -> Value {
    let response = server.clone().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

async fn configure(server: &Router, queue: &str, options: Value) -> Value {
    let body = json!({"queue": queue, "options": options}).to_string();
    let request = Request::post("/api/v1/configure").body(body.into());
    let answer = ask(server, request.unwrap()).await;
    answer["options"]["leaseTime"].clone()
}

async fn shown(server: &Router, queue: &str) -> Value {
    let request = Request::get(format!("/api/v1/status/queues/{queue}")).body(Body::empty());
    let answer = ask(server, request.unwrap()).await;
    answer["queue"]["config"]["leaseTime"].clone()
}

pub(crate) async fn the_lease_that_is_shown_is_the_one_that_holds(fixture: Fixture) {
    let server_7 = server(&fixture, 7);
    fixture.push("pushed", "p", &["a"]).await;
    for (queue, options) in [
        ("plain", json!({})),
        ("null", json!({"leaseTime": null})),
        ("zero", json!({"leaseTime": 0, "retryLimit": 5})),
    ] {
        assert_eq!(configure(&server_7, queue, options).await, 7, "{queue}");
    }
    assert_eq!(
        configure(&server_7, "own", json!({"leaseTime": 60})).await,
        60
    );
    // The setting changes: what holds is shown, and not what held when the queue was made.
    for (server, lease) in [(&server_7, 7), (&server(&fixture, 9), 9)] {
        for queue in ["pushed", "plain", "null", "zero"] {
            assert_eq!(shown(server, queue).await, lease, "{queue}");
        }
        assert_eq!(shown(server, "own").await, 60);
    }
}
