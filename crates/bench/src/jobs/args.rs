//! The arguments of `bench jobs`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::args::{RunArgs, ServerArgs, check_counts, check_lists, check_times};
use crate::open_files;
use crate::units::parse_duration;

/// A read is held for at most 30 s, and other requests come before the idle time.
const MAX_IDLE: Duration = Duration::from_secs(15);
const MAX_BODY_BYTES: usize = 10_000_000;

#[derive(Debug, Clone, Args)]
pub struct JobsArgs {
    #[command(flatten)]
    pub servers: ServerArgs,
    /// The directory of `start`, which hosts zndraw-joblib, and of `provider.py`, which serves the cold
    /// reads.
    #[arg(long, value_name = "DIRECTORY", default_value = "peers/joblib")]
    pub peer: PathBuf,

    /// How many reads of new keys a provider in Python answers, one after another.
    #[arg(long, default_value_t = 200)]
    pub cold: usize,
    /// How many connections read a result that is there already. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    pub connections: Vec<usize>,
    /// How many bytes that result has. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "200,100000")]
    pub bodies: Vec<usize>,
    /// How long each round of warm reads lasts. There are as many tasks as fill all rounds.
    #[arg(long, default_value = "2s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many rounds of warm reads there are. The report has their median.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// How many reads are held at once, if the server can take them in within 8 s.
    #[arg(long, default_value_t = 10_000)]
    pub held: usize,
    /// How many workers claim and complete tasks. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    pub workers: Vec<usize>,
    /// How many tasks there are at least.
    #[arg(long, default_value_t = 400)]
    pub tasks: usize,
    /// How many times to complete a task and time the request that waits for it.
    #[arg(long, default_value_t = 100)]
    pub wakes: usize,
    /// How long to watch held reads and held claims while nothing happens.
    #[arg(long, default_value = "10s", value_parser = parse_duration)]
    pub idle: Duration,
    #[command(flatten)]
    pub run: RunArgs<PhaseName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// The time of a read that a provider in Python answers.
    Cold,
    /// Reads per second of a result that is there already.
    Warm,
    /// Reads that are held until their results are uploaded, and warm reads meanwhile.
    Held,
    /// Tasks submitted, claimed, started and completed per second.
    Tasks,
    /// The time from the end of a task to the answer of the request that waits for it.
    Wake,
    /// Database statements per second of 1,000 held reads and 100 held claims.
    Idle,
}

impl JobsArgs {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_counts(&[
            ("--cold", self.cold),
            ("--rounds", self.rounds),
            ("--held", self.held),
            ("--tasks", self.tasks),
            ("--wakes", self.wakes),
        ])?;
        check_lists(&[
            ("--connections", &self.connections, 10_000),
            ("--bodies", &self.bodies, MAX_BODY_BYTES),
            ("--workers", &self.workers, 1_000),
        ])?;
        check_times(&[("--seconds", self.seconds)])?;
        ensure!(
            self.bodies.iter().all(|&bytes| bytes >= 2),
            "--bodies must be at least 2, the quotation marks of a JSON text"
        );
        ensure!(
            !self.idle.is_zero() && self.idle <= MAX_IDLE,
            "--idle must be more than nothing and at most {MAX_IDLE:?}, while reads are held"
        );
        let held = match self.run.wants(&PhaseName::Held) {
            true => self.held,
            false => 0,
        };
        let most = self.connections.iter().copied().max().unwrap_or_default();
        open_files::check(held.max(most), "hold fewer reads with --held")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    fn refusal(line: &str) -> String {
        let args: JobsArgs = parse(line);
        args.check().unwrap_err().to_string()
    }

    #[test]
    fn arguments_that_would_fail_later_or_measure_nothing_are_refused() {
        insta::assert_snapshot!(refusal("jobs --cold 0"), @"--cold must be at least 1");
        insta::assert_snapshot!(refusal("jobs --workers 1,1001"), @"--workers must be from 1 to 1000");
        insta::assert_snapshot!(refusal("jobs --bodies 1"), @"--bodies must be at least 2, the quotation marks of a JSON text");
        insta::assert_snapshot!(refusal("jobs --idle 16s"), @"--idle must be more than nothing and at most 15s, while reads are held");
        assert!(refusal("jobs --held 999999999").contains("hold fewer reads with --held"));
    }
}
