//! What `bench verify` can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

/// Long enough for each kind of fault to happen once.
const LEAST: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// How long producers and consumers work while things fail; the last drain comes on top.
    #[arg(long, default_value_t = 1.0)]
    pub minutes: f64,
    /// Repeats the choices of an earlier run [default: drawn, and printed].
    #[arg(long)]
    pub seed: Option<u64>,
    /// What the nodes stand on; PostgreSQL is started for the run.
    #[arg(long, value_enum, default_value_t = VerifyStore::Sqlite)]
    pub store: VerifyStore,
    /// How many nodes; SQLite has one.
    #[arg(long, default_value_t = 1)]
    pub nodes: usize,
    /// How many messages all producers push in a second, about.
    #[arg(long, default_value_t = 1_000)]
    pub rate: u32,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerifyStore {
    Sqlite,
    Postgres,
}

impl VerifyArgs {
    pub(super) fn time(&self) -> Duration {
        Duration::try_from_secs_f64(self.minutes * 60.0).unwrap_or_default()
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.time() >= LEAST,
            "--minutes must be at least {}",
            LEAST.as_secs_f64() / 60.0
        );
        ensure!(self.rate > 0, "--rate must be at least 1");
        ensure!(self.nodes > 0, "--nodes must be at least 1");
        ensure!(
            self.nodes == 1 || self.store == VerifyStore::Postgres,
            "--nodes: SQLite has one node; use --store postgres"
        );
        Ok(())
    }
}
