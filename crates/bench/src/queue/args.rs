//! The arguments of `bench queue`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::args::{RunArgs, StoreKind, check_counts, check_lists, check_times};
use crate::units::parse_duration;

const MAX_BATCH: usize = 10_000;

#[derive(Debug, Clone, Args)]
pub struct QueueArgs {
    /// Measure the server at this URL, which speaks Queen's protocol [default: a Wakeline that is
    /// started for the run].
    #[arg(long, conflicts_with_all = ["store", "side_by_side"])]
    pub url: Option<String>,
    /// Send this bearer token with every request to --url.
    #[arg(long, requires = "url")]
    pub token: Option<String>,
    /// Count idle statements in this PostgreSQL database of --url instead of /metrics.
    #[arg(long, value_name = "URL", requires = "url")]
    pub postgres: Option<String>,
    /// The store of the Wakeline that is started.
    #[arg(long, value_enum, default_value_t = StoreKind::Sqlite)]
    pub store: StoreKind,
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
    /// How many partitions a queue has. Each push goes to one of them, in turn.
    #[arg(long, default_value_t = 50)]
    pub partitions: usize,
    /// How many bytes each payload has: random text, which does not compress well.
    #[arg(long, default_value_t = 100)]
    pub payload: usize,
    /// Give every message a transactionId, so that the server checks it for duplicates.
    #[arg(long)]
    pub transaction_ids: bool,
    /// How many messages a push or a pop carries. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,10,100")]
    pub batches: Vec<usize>,
    /// How long each phase is measured.
    #[arg(long, default_value = "4s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many times to push one message and time the pop that gets it.
    #[arg(long, default_value_t = 200)]
    pub wakes: usize,
    /// How long to watch 100 held pops while nothing happens.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub idle: Duration,
    /// How many partitions the phase `partitions` makes.
    #[arg(long, default_value_t = 10_000)]
    pub many_partitions: usize,
    /// How many consumer groups the phase `fan-out` has.
    #[arg(long, default_value_t = 10)]
    pub groups: usize,
    #[command(flatten)]
    pub run: RunArgs<PhaseName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Messages pushed per second.
    Push,
    /// Messages popped and acknowledged per second, from a filled queue.
    Drain,
    /// The time from a push to the answer of the pop that was held for it.
    Wake,
    /// Database statements per second of 100 held pops on 100 queues.
    Idle,
    /// Filling, draining and searching a queue of 10,000 partitions.
    Partitions,
    /// Messages acknowledged per second by 10 groups that each get every message.
    FanOut,
}

impl QueueArgs {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_counts(&[
            ("--connections", self.connections),
            ("--partitions", self.partitions),
            ("--wakes", self.wakes),
            ("--many-partitions", self.many_partitions),
            ("--groups", self.groups),
        ])?;
        check_lists(&[("--batches", &self.batches, MAX_BATCH)])?;
        check_times(&[("--seconds", self.seconds), ("--idle", self.idle)])?;
        ensure!(
            (2..=1_000_000).contains(&self.payload),
            "--payload must be from 2 to 1000000 bytes, its quotation marks included"
        );
        Ok(())
    }
}
