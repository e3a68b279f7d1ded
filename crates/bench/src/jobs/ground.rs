//! What the run measures: a server that is there, or servers that it starts.

use wakeline_testbed::Redis;

use super::args::{ContestantName, JobsArgs, PhaseName};
use super::host::Host;
use super::peer::Peer;
use crate::contestant::Contestant;
use crate::databases::Databases;
use crate::own::{self, OwnServer};

pub(super) const UPSTREAM: &str = "zndraw-joblib";
pub(super) const WAKELINE_POSTGRES: &str = "Wakeline, PostgreSQL";
pub(super) const WAKELINE_SQLITE: &str = "Wakeline, SQLite";

/// The servers go before what they stand on.
pub(super) struct Ground {
    pub(super) hosts: Vec<Host>,
    pub(super) databases: Databases,
    redis: Option<Redis>,
}

impl Ground {
    pub(super) async fn prepare(args: &JobsArgs) -> anyhow::Result<Self> {
        let mut ground = Self {
            hosts: Vec::new(),
            databases: Databases::default(),
            redis: None,
        };
        let starts = |name| args.url.is_none() && args.starts(name);
        if args.wants(PhaseName::Cold) || starts(ContestantName::Upstream) {
            Peer::find(&args.peer)?.prepare()?;
        }
        if let Some(url) = &args.url {
            let mut server = Contestant::at(url, None).await?;
            server.postgres.clone_from(&args.postgres);
            server.pids.clone_from(&args.pid);
            ground.hosts.push(Host::enter(server).await?);
            return Ok(ground);
        }
        let needs_postgres = [ContestantName::Upstream, ContestantName::WakelinePostgres];
        if needs_postgres.into_iter().any(starts) {
            ground.databases = Databases::start()?;
        }
        if starts(ContestantName::Upstream) {
            eprintln!("starting zndraw-joblib");
            let redis = ground.redis.insert(Redis::start()?).url();
            let (_, url) = ground.databases.make("upstream")?;
            let server = Peer::find(&args.peer)?.host(&url, &redis)?;
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
        let server = Contestant::own(name, server, postgres).await?;
        self.hosts.push(Host::enter(server).await?);
        Ok(())
    }
}
