//! A server as `crates/server` runs it, with the sockets and one other route.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Result;
use axum::{Router, routing::get};
use serde_json::value::RawValue;
use wakeline_jobs::socket::{Limits, Sockets};
use wakeline_testkit::listen;

use crate::{poller::Poller, recording_backend::RecordingBackend, websocket::WebSocket};

pub(crate) struct Fixture {
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) door: Arc<RecordingBackend>,
    pub(crate) address: SocketAddr,
}

/// Limits so wide that a test meets only those that it sets.
pub(crate) fn limits() -> Limits {
    Limits {
        connections: 100,
        max_payload: 100_000,
        buffer: 1_000,
        ping_interval: Duration::from_secs(25),
        ping_timeout: Duration::from_secs(20),
    }
}

impl Fixture {
    pub(crate) async fn new() -> Result<Self> {
        Self::with(limits()).await
    }

    pub(crate) async fn with(limits: Limits) -> Result<Self> {
        let (sockets, service) = Sockets::new(&limits);
        let door = Arc::new(RecordingBackend::default());
        sockets.serve(door.clone());
        let router = Router::new()
            .route("/", get(async || "beside"))
            .route_service("/socket.io", service.clone())
            .route_service("/socket.io/", service);
        Ok(Self {
            sockets,
            door,
            address: listen(router).await,
        })
    }

    pub(crate) async fn poller(&self, token: &str) -> Result<Poller> {
        let mut poller = Poller::open(self.address).await?;
        poller.connect(token).await?;
        Ok(poller)
    }

    pub(crate) async fn websocket(&self, token: &str) -> Result<WebSocket> {
        let mut websocket = WebSocket::open(self.address).await?;
        websocket.connect(token).await?;
        Ok(websocket)
    }

    pub(crate) fn emit(&self, room: &str, event: &str, payload: &str) {
        let payload = RawValue::from_string(payload.to_owned()).unwrap();
        self.sockets.emit(room, event, &payload);
    }
}
