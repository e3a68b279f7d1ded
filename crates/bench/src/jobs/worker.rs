//! A worker that claims over HTTP, and that the server's sweeper leaves alone.

use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use tokio::task::AbortHandle;

use super::host::{API, ask};
use crate::contestant::{Contestant, PATIENCE};
use crate::line::Ask;

/// A worker that is silent for a minute is swept.
const HEARTBEAT: Duration = Duration::from_secs(20);

pub(super) struct Worker {
    pub(super) id: String,
    heartbeat: Option<AbortHandle>,
}

#[derive(Deserialize)]
struct Registered {
    id: String,
}

impl Worker {
    pub(super) async fn register(server: &Contestant) -> anyhow::Result<Self> {
        let path = server.path(&format!("{API}/workers"));
        let answer = server
            .line()
            .send(Ask::new(Method::POST, path, ""), PATIENCE)
            .await?;
        let Registered { id } = answer.read().context("registering a worker")?;
        Ok(Self {
            id,
            heartbeat: None,
        })
    }

    /// For longer than a sweeper's patience, until it is dropped.
    pub(super) fn keep(mut self, server: &Contestant) -> Self {
        let beat = self.of(server, Method::PATCH);
        let (mut line, failures) = (server.line(), server.failures.clone());
        let beating = tokio::spawn(async move {
            loop {
                tokio::time::sleep(HEARTBEAT).await;
                if let Err(error) = ask(&mut line, beat.clone()).await {
                    failures.add("heartbeat", &format!("{error:#}"));
                }
            }
        });
        self.heartbeat = Some(beating.abort_handle());
        self
    }

    pub(super) fn claim(&self, server: &Contestant) -> Ask {
        let path = server.path(&format!("{API}/tasks/claim"));
        let body = format!(r#"{{"worker_id":"{}"}}"#, self.id);
        Ask::new(Method::POST, path, body)
    }

    pub(super) async fn leave(self, server: &Contestant) -> anyhow::Result<()> {
        ask(&mut server.line(), self.of(server, Method::DELETE)).await
    }

    fn of(&self, server: &Contestant, method: Method) -> Ask {
        let path = server.path(&format!("{API}/workers/{}", self.id));
        Ask::new(method, path, "")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.abort();
        }
    }
}
