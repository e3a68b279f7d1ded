//! The arguments of `bench verify`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::args::{StoreKind, check_counts};

/// Long enough for each kind of fault to happen once.
const MIN_TIME: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// How long producers and consumers work under faults. The last drain comes on top.
    #[arg(long, default_value_t = 1.0)]
    pub minutes: f64,
    /// Repeat the choices of the run that printed this seed [default: a random one].
    #[arg(long)]
    pub seed: Option<u64>,
    /// The store of the nodes. PostgreSQL is started for the run.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    pub store: StoreKind,
    /// How many nodes there are; SQLite has one.
    #[arg(long, default_value_t = 1)]
    pub nodes: usize,
    /// About how many messages all producers together push per second.
    #[arg(long, default_value_t = 1_000)]
    pub rate: u32,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

impl VerifyArgs {
    pub(super) fn time(&self) -> Duration {
        Duration::try_from_secs_f64(self.minutes * 60.0).unwrap_or_default()
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.time() >= MIN_TIME,
            "--minutes must be at least {}",
            MIN_TIME.as_secs_f64() / 60.0
        );
        check_counts(&[("--rate", self.rate as usize), ("--nodes", self.nodes)])?;
        ensure!(
            self.nodes == 1 || self.store == StoreKind::Postgres,
            "--nodes: SQLite has one node; use --store postgres"
        );
        Ok(())
    }
}
