//! What `bench queue` can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::units::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct QueueArgs {
    /// A server that speaks Queen's protocol [default: a server of this binary, started for the run].
    #[arg(long, conflicts_with_all = ["store", "side_by_side"])]
    pub url: Option<String>,
    /// Bearer token for every request to --url.
    #[arg(long, requires = "url")]
    pub token: Option<String>,
    /// Count idle statements in this PostgreSQL database of --url instead of /metrics.
    #[arg(long, value_name = "URL", requires = "url")]
    pub postgres: Option<String>,
    /// What the server that is started stands on.
    #[arg(long, value_enum, default_value_t = OwnStore::Sqlite)]
    pub store: OwnStore,
    /// Measure Queen, Wakeline on PostgreSQL and Wakeline on SQLite in one run, phase by phase.
    #[arg(long, requires = "queen_bin")]
    pub side_by_side: bool,
    /// The `queen` program (`cargo install queen-engine --version 1.3.0`).
    #[arg(long, value_name = "PATH")]
    pub queen_bin: Option<PathBuf>,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,

    /// How many connections push and pop at once.
    #[arg(long, default_value_t = 50)]
    pub connections: usize,
    /// How many partitions a queue has; each push goes to one of them, in turn.
    #[arg(long, default_value_t = 50)]
    pub partitions: usize,
    /// Bytes of each payload: random text, which does not compress well.
    #[arg(long, default_value_t = 100)]
    pub payload: usize,
    /// Give every message a transactionId, so that the server looks for duplicates of it.
    #[arg(long)]
    pub transaction_ids: bool,
    /// How many messages a push or a pop carries; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100")]
    pub batches: Vec<usize>,
    /// How long each phase is measured.
    #[arg(long, default_value = "4s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many times to push one message and time the pop that is held for it, or finds it.
    #[arg(long, default_value_t = 200)]
    pub wakes: usize,
    /// How long to watch 100 waiters while nothing happens.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub idle: Duration,
    /// How many partitions the phase `partitions` makes.
    #[arg(long, default_value_t = 10_000)]
    pub many_partitions: usize,
    /// How many consumer groups the phase `fan-out` has.
    #[arg(long, default_value_t = 10)]
    pub groups: usize,
    /// Only these phases.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<PhaseName>,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OwnStore {
    Sqlite,
    Postgres,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Messages pushed per second.
    Push,
    /// Messages popped and acknowledged per second, from a filled queue.
    Drain,
    /// From a push to the answer of a pop that was held for it.
    Wake,
    /// Database statements per second of 100 held pops on 100 queues.
    Idle,
    /// A queue of 10,000 partitions.
    Partitions,
    /// Every message to each of 10 groups.
    FanOut,
}

impl QueueArgs {
    /// Everything that can be known to fail before the first server is started.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (flag, number) in [
            ("--connections", self.connections),
            ("--partitions", self.partitions),
            ("--wakes", self.wakes),
            ("--many-partitions", self.many_partitions),
            ("--groups", self.groups),
        ] {
            ensure!(number > 0, "{flag} must be at least 1");
        }
        ensure!(!self.batches.is_empty(), "--batches names no size");
        ensure!(
            self.batches
                .iter()
                .all(|batch| (1..=10_000).contains(batch)),
            "--batches must be from 1 to 10000"
        );
        ensure!(
            (2..=1_000_000).contains(&self.payload),
            "--payload must be from 2 to 1000000 bytes, its quotation marks included"
        );
        ensure!(
            !self.seconds.is_zero(),
            "--seconds must be more than nothing"
        );
        ensure!(!self.idle.is_zero(), "--idle must be more than nothing");
        Ok(())
    }

    pub(super) fn wants(&self, phase: PhaseName) -> bool {
        self.only.is_empty() || self.only.contains(&phase)
    }
}
