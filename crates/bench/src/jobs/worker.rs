//! A worker that claims over HTTP.

use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use tokio::task::AbortHandle;

use super::server::API;
use crate::connection::Request;
use crate::server::{REQUEST_TIMEOUT, Server};

/// The server removes a worker that sends nothing for a minute.
const HEARTBEAT: Duration = Duration::from_secs(20);

pub(super) struct Worker {
    pub(super) id: String,
    heartbeat: Option<AbortHandle>,
}

#[derive(Deserialize)]
struct WorkerResponse {
    id: String,
}

impl Worker {
    pub(super) async fn register(server: &Server) -> anyhow::Result<Self> {
        let path = server.path(&format!("{API}/workers"));
        let request = Request::new(Method::POST, path, "");
        let response = server.connection().send(request, REQUEST_TIMEOUT).await?;
        let WorkerResponse { id } = response.json().context("registering a worker")?;
        Ok(Self {
            id,
            heartbeat: None,
        })
    }

    /// Sends heartbeats until the worker is dropped.
    pub(super) fn with_heartbeat(mut self, server: &Server) -> Self {
        let request = self.request(server, Method::PATCH);
        let (mut connection, failures) = (server.connection(), server.failures.clone());
        let beating = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                let sent = connection.send_ok(request.clone(), REQUEST_TIMEOUT).await;
                if let Err(error) = sent {
                    failures.add_error("heartbeat", &error);
                }
            }
        });
        self.heartbeat = Some(beating.abort_handle());
        self
    }

    pub(super) fn claim(&self, server: &Server) -> Request {
        let path = server.path(&format!("{API}/tasks/claim"));
        let body = format!(r#"{{"worker_id":"{}"}}"#, self.id);
        Request::new(Method::POST, path, body)
    }

    pub(super) async fn leave(self, server: &Server) -> anyhow::Result<()> {
        let request = self.request(server, Method::DELETE);
        let left = server.connection().send_ok(request, REQUEST_TIMEOUT).await;
        left.map(drop)
    }

    fn request(&self, server: &Server, method: Method) -> Request {
        let path = server.path(&format!("{API}/workers/{}", self.id));
        Request::new(method, path, "")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.abort();
        }
    }
}
