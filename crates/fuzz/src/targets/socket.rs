//! Socket.IO: packets that a client sends by polling, each part of the input in a POST of its own.
//! The rules of rooms are those of the door's tests: every token is let in.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Collected};
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};
use tower::ServiceExt;
use uuid::Uuid;
use wakeline_jobs::{
    Error,
    caller::Caller,
    name::FullName,
    socket::{Limits, Service, SocketBackend, SocketId, Sockets},
};

use super::parts;

const LIMITS: Limits = Limits {
    connections: 100,
    max_payload: 100_000,
    buffer: 64,
    ping_interval: Duration::from_secs(3_600),
    ping_timeout: Duration::from_secs(3_600),
};
/// A poll that has nothing to fetch is held.
const POLLED: Duration = Duration::from_millis(1);
const MOST_POSTS: usize = 8;

struct OpenBackend;

impl SocketBackend for OpenBackend {
    fn connect(&self, token: Option<String>) -> BoxFuture<'_, Option<Caller>> {
        let caller = token.map(|_| Caller {
            id: Uuid::max(),
            is_superuser: false,
        });
        std::future::ready(caller).boxed()
    }

    fn may_serve_job(
        &self,
        _: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        check(&name);
        std::future::ready(Ok(worker.is_none())).boxed()
    }

    fn may_serve_provider(
        &self,
        caller: Caller,
        name: FullName,
        worker: Option<Uuid>,
    ) -> BoxFuture<'_, Result<bool, Error>> {
        self.may_serve_job(caller, name, worker)
    }

    fn provider_joined(&self, name: FullName, _: SocketId, _: Caller) {
        check(&name);
    }

    fn provider_left(&self, name: FullName) {
        check(&name);
    }

    fn room_join(
        &self,
        _: Caller,
        room: String,
        _: SocketId,
    ) -> BoxFuture<'_, Result<Value, Value>> {
        std::future::ready(Ok(json!({ "room_id": room }))).boxed()
    }
}

/// No store would have another one.
fn check(name: &FullName) {
    let parts = [&name.room, &name.category, &name.name];
    assert!(parts.iter().all(|part| part.chars().count() <= 255));
    assert!(!name.to_string().contains('\0'));
}

struct SocketServer {
    runtime: Runtime,
    service: Service,
    _sockets: Arc<Sockets>,
}

static SERVER: LazyLock<SocketServer> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (sockets, service) = runtime.block_on(async {
        let (sockets, service) = Sockets::new(&LIMITS);
        sockets.serve(Arc::new(OpenBackend));
        (sockets, service)
    });
    SocketServer {
        runtime,
        service,
        _sockets: sockets,
    }
});

impl SocketServer {
    async fn ask(&self, method: Method, session: &str, body: &[u8]) -> (StatusCode, Bytes) {
        let path = format!("/socket.io/?EIO=4&transport=polling{session}");
        let mut request = Request::new(Body::from(body.to_vec()));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a path");
        let answer = self.service.clone().oneshot(request).await;
        let answer = answer.unwrap_or_else(|never| match never {});
        let status = answer.status();
        let body = answer.into_body().collect().await;
        (status, body.map(Collected::to_bytes).unwrap_or_default())
    }

    async fn run(&self, input: &[u8]) {
        let (status, opened) = self.ask(Method::GET, "", b"").await;
        assert_eq!(status, StatusCode::OK);
        let opened: Value = serde_json::from_slice(&opened[1..]).expect("an open packet");
        let session = format!("&sid={}", opened["sid"].as_str().expect("an id"));
        for packets in parts(input).into_iter().take(MOST_POSTS) {
            let (status, _) = self.ask(Method::POST, &session, packets).await;
            assert!(!status.is_server_error() || status == 503, "{status}");
            if status != StatusCode::OK {
                break;
            }
            let poll = self.ask(Method::GET, &session, b"");
            if let Ok((status, _)) = timeout(POLLED, poll).await {
                assert!(!status.is_server_error() || status == 503, "{status}");
            }
        }
        // The farewell, so that nothing is left of the session.
        self.ask(Method::POST, &session, b"1").await;
    }
}

pub fn run(input: &[u8]) {
    let server = &*SERVER;
    server.runtime.block_on(server.run(input));
}
