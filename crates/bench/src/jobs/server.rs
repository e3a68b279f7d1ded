//! A client of a server of zndraw-joblib's protocol, logged in as a guest with all rights.

use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use tokio::time::Instant;

use super::worker::Worker;
use crate::connection::{Connection, Request, ServerAddress};
use crate::server::{REQUEST_TIMEOUT, Server};

pub(super) const API: &str = "/v1/joblib";
/// No server holds a read for longer.
pub(super) const HOLD: Duration = Duration::from_secs(30);
/// A server that holds a claim for a second has not answered after this.
const NOT_HELD_WITHIN: Duration = Duration::from_millis(900);

#[derive(Debug)]
pub(crate) struct JobsServer {
    pub(crate) server: Server,
    /// Whether it holds a claim that finds no task, as `Prefer: wait` asks.
    pub(super) holds_claims: bool,
}

#[derive(Deserialize)]
struct GuestToken<'a> {
    access_token: &'a str,
}

impl JobsServer {
    pub(super) async fn sign_in_to(server: Server) -> anyhow::Result<Self> {
        let mut host = Self {
            server,
            holds_claims: false,
        };
        host.sign_in().await?;
        let worker = Worker::register(&host.server).await?;
        let start = Instant::now();
        let claim = worker.claim(&host.server).held_for(Duration::from_secs(1));
        let mut connection = host.server.connection();
        connection.send_ok(claim, REQUEST_TIMEOUT).await?;
        host.holds_claims = start.elapsed() >= NOT_HELD_WITHIN;
        worker.leave(&host.server).await?;
        Ok(host)
    }

    /// A new process, if it was started for this run.
    pub(super) async fn restart(&mut self) -> anyhow::Result<()> {
        self.server.restart()?;
        self.sign_in().await
    }

    /// Tokens may not outlive the process that issued them.
    async fn sign_in(&mut self) -> anyhow::Result<()> {
        let url = &self.server.url;
        let mut connection = Connection::to(&ServerAddress::resolve(url, None).await?);
        let guest = Request::new(Method::POST, self.server.path("/v1/auth/guest"), "");
        let response = connection.send(guest, REQUEST_TIMEOUT).await?;
        let token: GuestToken<'_> = response
            .json()
            .with_context(|| format!("{url} lets no guest in"))?;
        self.server.address = ServerAddress::resolve(url, Some(token.access_token)).await?;
        Ok(())
    }
}
