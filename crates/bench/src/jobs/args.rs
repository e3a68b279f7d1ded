//! What `bench jobs` can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::open_files;
use crate::units::parse_duration;

/// A read is held for half a minute at the most, and this is only a part of it.
const LONGEST_IDLE: Duration = Duration::from_secs(15);
/// Of one body.
const MOST_BYTES: usize = 10_000_000;

#[derive(Debug, Clone, Args)]
pub struct JobsArgs {
    /// A server that speaks zndraw-joblib's protocol, where guests may register jobs and providers
    /// [default: servers that are started for the run].
    #[arg(long, conflicts_with_all = ["contestants", "side_by_side"])]
    pub url: Option<String>,
    /// Read memory of this process of --url instead of /metrics (repeat for several).
    #[arg(long, requires = "url")]
    pub pid: Vec<u32>,
    /// Count idle statements in this PostgreSQL database of --url instead of /metrics.
    #[arg(long, value_name = "URL", requires = "url")]
    pub postgres: Option<String>,
    /// The servers to start. `upstream` is a host of zndraw-joblib, on PostgreSQL and Redis.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "wakeline-sqlite"
    )]
    pub contestants: Vec<ContestantName>,
    /// All of them: zndraw-joblib, Wakeline on the same PostgreSQL, Wakeline on SQLite.
    #[arg(long, conflicts_with = "contestants")]
    pub side_by_side: bool,
    /// Where `start` of zndraw-joblib's host is, and `provider.py`, which serves the cold reads.
    #[arg(long, value_name = "DIRECTORY", default_value = "peers/joblib")]
    pub peer: PathBuf,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,

    /// How many reads of new keys a provider in Python answers, one after another.
    #[arg(long, default_value_t = 200)]
    pub cold: usize,
    /// How many connections read what is there already; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    pub connections: Vec<usize>,
    /// How many bytes these reads bring; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "200,100000")]
    pub bodies: Vec<usize>,
    /// How long each round of warm reads is; tasks are as many as fill all rounds.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many rounds of warm reads there are; their median is told.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// How many reads are held at once, of a server that can take them in within some seconds.
    #[arg(long, default_value_t = 10_000)]
    pub held: usize,
    /// How many workers claim and complete tasks; one measurement for each.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    pub workers: Vec<usize>,
    /// How many tasks at the least.
    #[arg(long, default_value_t = 400)]
    pub tasks: usize,
    /// How many times to complete a task and time who waits for it.
    #[arg(long, default_value_t = 100)]
    pub wakes: usize,
    /// How long to watch held reads and held claims while nothing happens.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
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
    /// A read that a provider in Python answers, from dispatch to answer.
    Cold,
    /// Reads per second of what is there already.
    Warm,
    /// Reads that are held until their results are uploaded, and warm reads meanwhile.
    Held,
    /// Tasks submitted, claimed, begun and completed per second.
    Tasks,
    /// From the end of a task to the answer of who waits for it.
    Wake,
    /// Database statements per second of 1,000 held reads and 100 held claims.
    Idle,
}

impl JobsArgs {
    /// Everything that can be known to fail before the first server is started.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (flag, number) in [
            ("--cold", self.cold),
            ("--rounds", self.rounds),
            ("--held", self.held),
            ("--tasks", self.tasks),
            ("--wakes", self.wakes),
        ] {
            ensure!(number > 0, "{flag} must be at least 1");
        }
        for (flag, numbers, most) in [
            ("--connections", &self.connections, 10_000),
            ("--bodies", &self.bodies, MOST_BYTES),
            ("--workers", &self.workers, 1_000),
        ] {
            ensure!(!numbers.is_empty(), "{flag} names no number");
            ensure!(
                numbers.iter().all(|number| (1..=most).contains(number)),
                "{flag} must be from 1 to {most}"
            );
        }
        ensure!(
            self.bodies.iter().all(|&bytes| bytes >= 2),
            "--bodies must be at least 2, the quotation marks of a JSON text"
        );
        ensure!(
            !self.seconds.is_zero(),
            "--seconds must be more than nothing"
        );
        ensure!(
            !self.idle.is_zero() && self.idle <= LONGEST_IDLE,
            "--idle must be more than nothing and at most {LONGEST_IDLE:?}, while reads are held"
        );
        let held = if self.wants(PhaseName::Held) {
            self.held
        } else {
            0
        };
        let most = self.connections.iter().copied().max().unwrap_or_default();
        open_files::check(held.max(most), "hold fewer with --held")
    }

    pub(super) fn wants(&self, phase: PhaseName) -> bool {
        self.only.is_empty() || self.only.contains(&phase)
    }

    pub(super) fn starts(&self, contestant: ContestantName) -> bool {
        self.side_by_side || self.contestants.contains(&contestant)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: JobsArgs,
    }

    fn refusal(line: &str) -> String {
        let args = Cli::parse_from(line.split(' ')).args;
        args.check().unwrap_err().to_string()
    }

    #[test]
    fn what_would_fail_later_or_measure_nothing_is_refused() {
        insta::assert_snapshot!(refusal("jobs --cold 0"), @"--cold must be at least 1");
        insta::assert_snapshot!(refusal("jobs --workers 1,1001"), @"--workers must be from 1 to 1000");
        insta::assert_snapshot!(refusal("jobs --bodies 1"), @"--bodies must be at least 2, the quotation marks of a JSON text");
        insta::assert_snapshot!(refusal("jobs --idle 16s"), @"--idle must be more than nothing and at most 15s, while reads are held");
        assert!(refusal("jobs --held 999999999").contains("hold fewer with --held"));
    }

    #[test]
    fn a_server_is_started_when_it_is_named_or_all_are_wanted() {
        let starts = |line: &str, name| Cli::parse_from(line.split(' ')).args.starts(name);
        let (upstream, sqlite) = (ContestantName::Upstream, ContestantName::WakelineSqlite);
        assert!(starts("jobs", sqlite) && !starts("jobs", upstream));
        assert!(starts("jobs --contestants upstream", upstream));
        assert!(!starts("jobs --contestants upstream", sqlite));
        assert!(starts("jobs --side-by-side", sqlite) && starts("jobs --side-by-side", upstream));
    }
}
