//! What the run measures: a server that is there, or servers that it starts.

use anyhow::Context;

use super::args::{OwnStore, QueueArgs};
use crate::contestant::Contestant;
use crate::databases::Databases;
use crate::own::{self, OwnServer};

pub(super) const QUEEN: &str = "Queen";
pub(super) const WAKELINE_POSTGRES: &str = "Wakeline, PostgreSQL";
const WAKELINE_SQLITE: &str = "Wakeline, SQLite";

/// The servers go before the databases they stand on.
pub(super) struct Ground {
    pub(super) contestants: Vec<Contestant>,
    pub(super) databases: Databases,
}

impl Ground {
    pub(super) async fn prepare(args: &QueueArgs) -> anyhow::Result<Self> {
        if let Some(url) = &args.url {
            let mut contestant = Contestant::at(url, args.token.clone()).await?;
            contestant.postgres.clone_from(&args.postgres);
            return Ok(Self {
                contestants: vec![contestant],
                databases: Databases::default(),
            });
        }
        let wakeline = own::wakeline_program(args.wakeline_bin.as_deref())?;
        let mut ground = Self {
            contestants: Vec::new(),
            databases: Databases::default(),
        };
        if args.side_by_side || args.store == OwnStore::Postgres {
            ground.databases = Databases::start()?;
        }
        if args.side_by_side {
            let program = args.queen_bin.as_deref().context("--queen-bin")?;
            let (postgres, url) = ground.databases.make("queen")?;
            eprintln!("starting Queen");
            let server = OwnServer::queen(program, postgres, "queen")?;
            ground.add(QUEEN, server, Some(url)).await?;
        }
        if ground.databases.is_started() {
            let (_, url) = ground.databases.make("wakeline")?;
            let server = OwnServer::wakeline(&wakeline, Some(&url), &[])?;
            ground.add(WAKELINE_POSTGRES, server, Some(url)).await?;
        }
        if args.side_by_side || args.store == OwnStore::Sqlite {
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
        let contestant = Contestant::own(name, server, postgres).await?;
        self.contestants.push(contestant);
        Ok(())
    }
}
