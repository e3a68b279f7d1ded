//! What the run measures: a server that is there, or servers that it starts.

use std::path::PathBuf;

use anyhow::Context;
use wakeline_testbed::{Postgres, psql};

use super::args::{OwnStore, QueueArgs};
use super::contestant::Contestant;
use crate::own::OwnServer;

pub(super) const QUEEN: &str = "Queen";
pub(super) const WAKELINE_POSTGRES: &str = "Wakeline, PostgreSQL";
const WAKELINE_SQLITE: &str = "Wakeline, SQLite";

/// The servers go before the database they stand on.
pub(super) struct Ground {
    pub(super) contestants: Vec<Contestant>,
    postgres: Option<Postgres>,
}

impl Ground {
    pub(super) async fn prepare(args: &QueueArgs) -> anyhow::Result<Self> {
        if let Some(url) = &args.url {
            let mut contestant = Contestant::at(url, args.token.clone()).await?;
            contestant.postgres.clone_from(&args.postgres);
            return Ok(Self {
                contestants: vec![contestant],
                postgres: None,
            });
        }
        let wakeline: PathBuf = match &args.wakeline_bin {
            Some(path) => path.clone(),
            None => std::env::current_exe()?,
        };
        let mut ground = Self {
            contestants: Vec::new(),
            postgres: None,
        };
        if args.side_by_side || args.store == OwnStore::Postgres {
            eprintln!("starting PostgreSQL");
            ground.postgres = Some(Postgres::start()?);
        }
        if args.side_by_side {
            let program = args.queen_bin.as_deref().context("--queen-bin")?;
            let (postgres, url) = ground.database("queen")?;
            eprintln!("starting Queen");
            let server = OwnServer::queen(program, postgres, "queen")?;
            ground.add(QUEEN, server, Some(url)).await?;
        }
        if ground.postgres.is_some() {
            let (_, url) = ground.database("wakeline")?;
            let server = OwnServer::wakeline(&wakeline, Some(&url), &[])?;
            ground.add(WAKELINE_POSTGRES, server, Some(url)).await?;
        }
        if args.side_by_side || args.store == OwnStore::Sqlite {
            let server = OwnServer::wakeline(&wakeline, None, &[])?;
            ground.add(WAKELINE_SQLITE, server, None).await?;
        }
        Ok(ground)
    }

    /// A database that counts its statements, if this PostgreSQL can.
    fn database(&self, name: &str) -> anyhow::Result<(&Postgres, String)> {
        let postgres = self
            .postgres
            .as_ref()
            .context("no PostgreSQL was started")?;
        psql(&postgres.url(), &format!("CREATE DATABASE {name}"))?;
        let url = postgres.url_for(name);
        // Not installed everywhere; transactions are counted then.
        let _ = psql(&url, "CREATE EXTENSION pg_stat_statements");
        Ok((postgres, url))
    }

    async fn add(
        &mut self,
        name: &str,
        server: OwnServer,
        postgres: Option<String>,
    ) -> anyhow::Result<()> {
        let contestant = Contestant::own(name, server, postgres).await?;
        self.contestants.push(contestant);
        Ok(())
    }

    /// So that no phase pays for what the one before it has left to be written.
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        if let Some(postgres) = &self.postgres {
            psql(&postgres.url(), "CHECKPOINT")?;
        }
        Ok(())
    }
}
