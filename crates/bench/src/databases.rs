//! The PostgreSQL that a run starts, with a database for each that stands on it.

use anyhow::Context;
use wakeline_testbed::{Postgres, psql};

/// None until it is started: a run on SQLite needs none.
#[derive(Default)]
pub(crate) struct Databases(Option<Postgres>);

impl Databases {
    pub(crate) fn start() -> anyhow::Result<Self> {
        eprintln!("starting PostgreSQL");
        Ok(Self(Some(Postgres::start()?)))
    }

    pub(crate) fn is_started(&self) -> bool {
        self.0.is_some()
    }

    /// A new one that counts its statements, if this PostgreSQL can; with its URL.
    pub(crate) fn make(&self, name: &str) -> anyhow::Result<(&Postgres, String)> {
        let postgres = self.0.as_ref().context("no PostgreSQL was started")?;
        psql(&postgres.url(), &format!("CREATE DATABASE {name}"))?;
        let url = postgres.url_for(name);
        // Not installed everywhere; transactions are counted then.
        let _ = psql(&url, "CREATE EXTENSION pg_stat_statements");
        Ok((postgres, url))
    }

    /// So that no phase pays for what the one before it has left to be written.
    pub(crate) fn settle(&self) -> anyhow::Result<()> {
        if let Some(postgres) = &self.0 {
            psql(&postgres.url(), "CHECKPOINT")?;
        }
        Ok(())
    }
}
