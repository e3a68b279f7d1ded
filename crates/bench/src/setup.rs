//! What a run measures, and what that needs: a server that is there already, or servers that the run
//! starts, with their databases.

use std::path::Path;

use anyhow::Context;
use wakeline_testbed::{Postgres, Redis, psql};

use crate::args::{ContestantName, ServerArgs};
use crate::peer::Peer;
use crate::server::Server;
use crate::server_process::{ServerProcess, wakeline_program};

pub(crate) const WAKELINE_POSTGRES: &str = "Wakeline, PostgreSQL";
pub(crate) const WAKELINE_SQLITE: &str = "Wakeline, SQLite";

/// The contestants end before the databases that they use, as the fields are dropped in this order.
pub(crate) struct Setup<C> {
    pub(crate) contestants: Vec<C>,
    pub(crate) databases: Databases,
    pub(crate) redis: Option<Redis>,
}

impl<C> Setup<C> {
    /// On a PostgreSQL of its own, if that is needed.
    pub(crate) fn new(needs_postgres: bool) -> anyhow::Result<Self> {
        Ok(Self {
            contestants: Vec::new(),
            databases: Databases::start(needs_postgres)?,
            redis: None,
        })
    }
}

impl Setup<Server> {
    /// The server at --url, or those that --contestants names.
    pub(crate) async fn of(args: &ServerArgs, peer: &Peer) -> anyhow::Result<Self> {
        let upstream = args.starts(ContestantName::Upstream);
        let postgres = args.starts(ContestantName::WakelinePostgres);
        let mut setup = Self::new(upstream || postgres)?;
        if let Some(url) = &args.url {
            let mut server = Server::at(url, None).await?;
            server.postgres.clone_from(&args.postgres);
            server.pids.clone_from(&args.pid);
            setup.contestants.push(server);
            return Ok(setup);
        }
        if upstream {
            let redis = match peer.needs_redis {
                true => Some(setup.redis.insert(Redis::start()?).url()),
                false => None,
            };
            let (_, url) = setup.databases.make("upstream")?;
            let process = peer.start(&url, redis.as_deref())?;
            setup.add(peer.name, process, Some(url)).await?;
        }
        let sqlite = args.starts(ContestantName::WakelineSqlite);
        let program = args.wakeline_bin.as_deref();
        setup.add_wakeline(program, postgres, sqlite).await?;
        Ok(setup)
    }

    /// Wakeline on PostgreSQL, on SQLite, or both.
    pub(crate) async fn add_wakeline(
        &mut self,
        program: Option<&Path>,
        postgres: bool,
        sqlite: bool,
    ) -> anyhow::Result<()> {
        let program = wakeline_program(program)?;
        if postgres {
            let (_, url) = self.databases.make("wakeline")?;
            let process = ServerProcess::wakeline(&program, Some(&url), &[])?;
            self.add(WAKELINE_POSTGRES, process, Some(url)).await?;
        }
        if sqlite {
            let process = ServerProcess::wakeline(&program, None, &[])?;
            self.add(WAKELINE_SQLITE, process, None).await?;
        }
        Ok(())
    }

    pub(crate) async fn add(
        &mut self,
        name: &str,
        process: ServerProcess,
        postgres: Option<String>,
    ) -> anyhow::Result<()> {
        self.contestants
            .push(Server::of(name, process, postgres).await?);
        Ok(())
    }
}

/// The PostgreSQL that a run starts, with a database for each contestant that needs one.
pub(crate) struct Databases(Option<Postgres>);

impl Databases {
    fn start(is_needed: bool) -> anyhow::Result<Self> {
        if !is_needed {
            return Ok(Self(None));
        }
        eprintln!("starting PostgreSQL");
        Ok(Self(Some(Postgres::start()?)))
    }

    pub(crate) fn postgres(&self) -> anyhow::Result<&Postgres> {
        self.0.as_ref().context("no PostgreSQL was started")
    }

    /// A new database, with its URL, that counts its statements if this PostgreSQL can.
    pub(crate) fn make(&self, name: &str) -> anyhow::Result<(&Postgres, String)> {
        let postgres = self.postgres()?;
        psql(&postgres.url(), &format!("CREATE DATABASE {name}"))?;
        let url = postgres.url_for(name);
        for url in [&postgres.url(), &url] {
            // The extension is not installed everywhere; without it, transactions are counted.
            let _ = psql(url, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
        }
        Ok((postgres, url))
    }

    pub(crate) fn checkpoint(&self) -> anyhow::Result<()> {
        if let Some(postgres) = &self.0 {
            psql(&postgres.url(), "CHECKPOINT")?;
        }
        Ok(())
    }
}
