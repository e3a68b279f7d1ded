//! An HTTP server around a protocol that a test plays.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::TcpListener;

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What the server answers, with its state.
pub(crate) trait Protocol: Default + Send + Sync + 'static {
    fn respond(
        self: Arc<Self>,
        head: Parts,
        body: Bytes,
    ) -> impl Future<Output = Response<Body>> + Send;
}

pub(crate) struct FakeServer<P> {
    pub(crate) url: String,
    pub(crate) state: Arc<P>,
    connections: Arc<AtomicUsize>,
}

impl<P: Protocol> FakeServer<P> {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            state: Arc::default(),
            connections: Arc::default(),
        };
        let (state, connections) = (server.state.clone(), server.connections.clone());
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let state = state.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| respond(state.clone(), request));
                    auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await
                });
            }
        });
        server
    }

    /// How many were ever accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn respond<P: Protocol>(
    state: Arc<P>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Ok(state.respond(head, body).await)
}

pub(crate) fn whole(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response
}

pub(crate) fn json(status: StatusCode, body: &Value) -> Response<Body> {
    whole(status, body.to_string())
}

pub(crate) fn header<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    Some(head.headers.get(name)?.to_str().unwrap())
}

/// How many requests are held or streams open, now and at most.
#[derive(Default, Clone)]
pub(crate) struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

/// Counts for as long as it lives, also when the client hangs up.
pub(crate) struct GaugeGuard(Gauge);

impl Gauge {
    pub(crate) fn enter(&self) -> GaugeGuard {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        GaugeGuard(self.clone())
    }

    pub(crate) fn now(&self) -> usize {
        self.0.0.load(Ordering::SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
