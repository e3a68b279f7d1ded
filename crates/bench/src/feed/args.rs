//! What `bench feed` can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::open_files;
use crate::units::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct FeedArgs {
    /// A server that speaks Jinaga's protocol under /jinaga and asks nobody who he is [default:
    /// servers that are started for the run].
    #[arg(long, conflicts_with_all = ["contestants", "side_by_side"])]
    pub url: Option<String>,
    /// Read memory of this process of --url instead of /metrics (repeat for several).
    #[arg(long, requires = "url")]
    pub pid: Vec<u32>,
    /// Count idle statements in this PostgreSQL database of --url instead of /metrics.
    #[arg(long, value_name = "URL", requires = "url")]
    pub postgres: Option<String>,
    /// The servers to start. `upstream` is a host of jinaga-server, on PostgreSQL.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "wakeline-sqlite"
    )]
    pub contestants: Vec<ContestantName>,
    /// All of them: jinaga-server, Wakeline on the same PostgreSQL, Wakeline on SQLite.
    #[arg(long, conflicts_with = "contestants")]
    pub side_by_side: bool,
    /// Where `start` of jinaga-server's host is.
    #[arg(long, value_name = "DIRECTORY", default_value = "peers/jinaga")]
    pub peer: PathBuf,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,

    /// How many connections save single facts; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    pub connections: Vec<usize>,
    /// How long each measurement of saves is.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many tuples a stream brings until it says SYNC; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    pub tuples: Vec<usize>,
    /// How long such a stream may take before it is given up.
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub patience: Duration,
    /// How many streams are open while facts are saved; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1,100,1000,10000")]
    pub streams: Vec<usize>,
    /// How many facts are saved one after another while they are open, at the most.
    #[arg(long, default_value_t = 200)]
    pub saves: usize,
    /// How long these may take, after the first few.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub live: Duration,
    /// How long to watch open streams while nothing happens.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub idle: Duration,
    /// Only these phases.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<PhaseName>,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ContestantName {
    Upstream,
    WakelinePostgres,
    WakelineSqlite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Saves per second: of single facts, and of graphs of 100.
    Save,
    /// From opening a stream to its SYNC, with so many tuples before it.
    Backfill,
    /// From a save to the frame at the streams it concerns; memory and statements of open streams.
    Live,
}

impl FeedArgs {
    /// Everything that can be known to fail before the first server is started.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.saves > 0, "--saves must be at least 1");
        for (flag, numbers, most) in [
            ("--connections", &self.connections, 10_000),
            ("--tuples", &self.tuples, 10_000_000),
            ("--streams", &self.streams, 100_000),
        ] {
            ensure!(!numbers.is_empty(), "{flag} names no number");
            ensure!(
                numbers.iter().all(|number| (1..=most).contains(number)),
                "{flag} must be from 1 to {most}"
            );
        }
        for (flag, time) in [
            ("--seconds", self.seconds),
            ("--patience", self.patience),
            ("--live", self.live),
            ("--idle", self.idle),
        ] {
            ensure!(!time.is_zero(), "{flag} must be more than nothing");
        }
        let most = |wanted, numbers: &[usize]| {
            let most = numbers.iter().copied().max().unwrap_or_default();
            if wanted { most } else { 0 }
        };
        let streams = most(self.wants(PhaseName::Live), &self.streams);
        let connections = most(self.wants(PhaseName::Save), &self.connections);
        open_files::check(streams.max(connections), "open fewer with --streams")
    }

    pub(super) fn wants(&self, phase: PhaseName) -> bool {
        self.only.is_empty() || self.only.contains(&phase)
    }

    pub(super) fn starts(&self, contestant: ContestantName) -> bool {
        self.side_by_side || self.contestants.contains(&contestant)
    }

    /// Of those in `streams`, where idle statements are counted: once is enough.
    pub(super) fn idle_streams(&self) -> Option<usize> {
        let fitting = self.streams.iter().copied().filter(|&count| count <= 1_000);
        fitting.max()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: FeedArgs,
    }

    fn args(line: &str) -> FeedArgs {
        Cli::parse_from(line.split(' ')).args
    }

    #[test]
    fn what_would_fail_later_or_measure_nothing_is_refused() {
        let refusal = |line: &str| args(line).check().unwrap_err().to_string();
        insta::assert_snapshot!(refusal("feed --saves 0"), @"--saves must be at least 1");
        insta::assert_snapshot!(refusal("feed --tuples 0"), @"--tuples must be from 1 to 10000000");
        insta::assert_snapshot!(refusal("feed --idle 0s"), @"--idle must be more than nothing");
    }

    #[test]
    fn idle_streams_are_the_most_up_to_a_thousand() {
        assert_eq!(args("feed").idle_streams(), Some(1_000));
        assert_eq!(args("feed --streams 10,20").idle_streams(), Some(20));
        assert_eq!(args("feed --streams 5000").idle_streams(), None);
    }
}
