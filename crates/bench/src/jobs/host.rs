//! A server of zndraw-joblib's protocol, as a guest who may do everything sees it.

use std::time::Duration;

use anyhow::Context;
use http::Method;
use serde::Deserialize;
use tokio::time::Instant;

use super::worker::Worker;
use crate::contestant::{Contestant, PATIENCE};
use crate::line::{Ask, Line, Target};

pub(super) const API: &str = "/v1/joblib";
/// Servers hold no read for longer.
pub(super) const HOLD: Duration = Duration::from_secs(30);
/// Whoever holds a claim for a second has not answered after this.
const AT_ONCE: Duration = Duration::from_millis(900);

pub(super) struct Host {
    pub(super) server: Contestant,
    /// Whether it holds a claim that finds nothing, as `Prefer: wait` asks.
    pub(super) holds_claims: bool,
}

#[derive(Deserialize)]
struct Guest<'a> {
    access_token: &'a str,
}

impl Host {
    pub(super) async fn enter(server: Contestant) -> anyhow::Result<Self> {
        let mut host = Self {
            server,
            holds_claims: false,
        };
        host.sign_in().await?;
        let worker = Worker::register(&host.server).await?;
        let start = Instant::now();
        let claim = worker.claim(&host.server).with("prefer", "wait=1");
        ask(&mut host.server.line(), claim).await?;
        host.holds_claims = start.elapsed() >= AT_ONCE;
        worker.leave(&host.server).await?;
        Ok(host)
    }

    /// A new process, if it was started for this run.
    pub(super) async fn start_afresh(&mut self) -> anyhow::Result<()> {
        self.server.start_afresh()?;
        self.sign_in().await
    }

    /// Tokens may not outlive the process that gave them.
    async fn sign_in(&mut self) -> anyhow::Result<()> {
        let url = &self.server.url;
        let mut line = Line::to(&Target::resolve(url, None).await?);
        let guest = Ask::new(Method::POST, self.server.path("/v1/auth/guest"), "");
        let answer = line.send(guest, PATIENCE).await?;
        let guest: Guest<'_> = answer
            .read()
            .with_context(|| format!("{url} lets no guest in"))?;
        self.server.target = Target::resolve(url, Some(guest.access_token)).await?;
        Ok(())
    }
}

/// Only for what has no answer of interest.
pub(super) async fn ask(line: &mut Line, ask: Ask) -> anyhow::Result<()> {
    let answer = line.send(ask, PATIENCE).await?;
    anyhow::ensure!(answer.status.is_success(), "{}", answer.shown());
    Ok(())
}
