//! Calls of the routes of a door.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
};
use http::{Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;
use wakeline_queue::Queue;

pub(crate) struct Routes(Router);

impl Routes {
    pub(crate) fn of(door: Arc<Queue>) -> Self {
        Self(wakeline_queue::http::router(door).split_for_parts().0)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask_get(path).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask_post(path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(crate) async fn ask_get(&self, path: &str) -> (StatusCode, Value) {
        let request = Request::get(path).body(Body::empty());
        self.ask(request.expect("a request")).await
    }

    pub(crate) async fn ask_post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::post(path).body(body.to_string().into());
        self.ask(request.expect("a request")).await
    }

    pub(crate) async fn ask_post_bytes(&self, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
        let request = Request::post(path).body(body.into());
        self.ask(request.expect("a request")).await
    }

    /// An answer without a body is null.
    async fn ask(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.0.clone().oneshot(request).await.expect("an answer");
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await;
        let body = body.expect("a whole body");
        let answer = match body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&body).expect("JSON"),
        };
        (status, answer)
    }
}
