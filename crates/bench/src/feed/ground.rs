//! What the run measures: a server that is there, or servers that it starts.

use super::args::{ContestantName, FeedArgs};
use super::peer::Peer;
use crate::contestant::Contestant;
use crate::databases::Databases;
use crate::own::{self, OwnServer};

pub(super) const UPSTREAM: &str = "jinaga-server";
pub(super) const WAKELINE_POSTGRES: &str = "Wakeline, PostgreSQL";
pub(super) const WAKELINE_SQLITE: &str = "Wakeline, SQLite";

/// The servers go before what they stand on.
pub(super) struct Ground {
    pub(super) servers: Vec<Contestant>,
    pub(super) databases: Databases,
}

impl Ground {
    pub(super) async fn prepare(args: &FeedArgs) -> anyhow::Result<Self> {
        let mut ground = Self {
            servers: Vec::new(),
            databases: Databases::default(),
        };
        if let Some(url) = &args.url {
            let mut server = Contestant::at(url, None).await?;
            server.postgres.clone_from(&args.postgres);
            server.pids.clone_from(&args.pid);
            ground.servers.push(server);
            return Ok(ground);
        }
        let starts = |name| args.starts(name);
        let peer = match starts(ContestantName::Upstream) {
            true => Some(Peer::find(&args.peer)?),
            false => None,
        };
        if peer.is_some() || starts(ContestantName::WakelinePostgres) {
            ground.databases = Databases::start()?;
        }
        if let Some(peer) = peer {
            peer.prepare()?;
            eprintln!("starting jinaga-server");
            let (_, url) = ground.databases.make("upstream")?;
            let server = peer.host(&url)?;
            ground.add(UPSTREAM, server, Some(url)).await?;
        }
        let wakeline = own::wakeline_program(args.wakeline_bin.as_deref())?;
        if starts(ContestantName::WakelinePostgres) {
            let (_, url) = ground.databases.make("wakeline")?;
            let server = OwnServer::wakeline(&wakeline, Some(&url), &[])?;
            ground.add(WAKELINE_POSTGRES, server, Some(url)).await?;
        }
        if starts(ContestantName::WakelineSqlite) {
            let server = OwnServer::wakeline(&wakeline, None, &[])?;
            ground.add(WAKELINE_SQLITE, server, None).await?;
        }
        Ok(ground)
    }

    async fn add(
        &mut self,
        name: &str,
        server: OwnServer,
        postgres: Option<String>,
    ) -> anyhow::Result<()> {
        self.servers
            .push(Contestant::own(name, server, postgres).await?);
        Ok(())
    }
}
