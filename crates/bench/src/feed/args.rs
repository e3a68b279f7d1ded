//! The arguments of `bench feed`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::{RunArgs, ServerArgs, check_counts, check_lists, check_times};
use crate::open_files;
use crate::units::parse_duration;

#[derive(Debug, Clone, Args)]
pub struct FeedArgs {
    #[command(flatten)]
    pub servers: ServerArgs,
    /// The directory of `start`, which hosts jinaga-server.
    #[arg(long, value_name = "DIRECTORY", default_value = "peers/jinaga")]
    pub peer: PathBuf,

    /// How many connections save single facts. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    pub connections: Vec<usize>,
    /// How long each measurement of saves lasts.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    pub seconds: Duration,
    /// How many tuples a stream brings until its SYNC. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    pub tuples: Vec<usize>,
    /// How long such a stream may take before it is given up.
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    pub patience: Duration,
    /// How many streams are open while facts are saved. Each number is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,100,1000,10000")]
    pub streams: Vec<usize>,
    /// How many facts are saved one after another while streams are open, at most.
    #[arg(long, default_value_t = 200)]
    pub saves: usize,
    /// How long these saves may take, after the first five.
    #[arg(long, default_value = "60s", value_parser = parse_duration)]
    pub live: Duration,
    /// How long to watch open streams while nothing happens.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    pub idle: Duration,
    #[command(flatten)]
    pub run: RunArgs<PhaseName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Saves per second: of single facts, and of graphs of 100.
    Save,
    /// The time from opening a stream to its SYNC, with many tuples before it.
    Backfill,
    /// The time from a save to the frame at the streams that it concerns; what open streams cost.
    Live,
}

impl FeedArgs {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_counts(&[("--saves", self.saves)])?;
        check_lists(&[
            ("--connections", &self.connections, 10_000),
            ("--tuples", &self.tuples, 10_000_000),
            ("--streams", &self.streams, 100_000),
        ])?;
        check_times(&[
            ("--seconds", self.seconds),
            ("--patience", self.patience),
            ("--live", self.live),
            ("--idle", self.idle),
        ])?;
        let most = |phase, numbers: &[usize]| match self.run.wants(&phase) {
            true => numbers.iter().copied().max().unwrap_or_default(),
            false => 0,
        };
        let streams = most(PhaseName::Live, &self.streams);
        let connections = most(PhaseName::Save, &self.connections);
        open_files::check(
            streams.max(connections),
            "open fewer streams with --streams",
        )
    }

    /// Idle statements are counted at one of the numbers in `streams`: the largest up to 1,000.
    pub(super) fn idle_streams(&self) -> Option<usize> {
        let fitting = self.streams.iter().copied().filter(|&count| count <= 1_000);
        fitting.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn arguments_that_would_fail_later_or_measure_nothing_are_refused() {
        let refusal = |line: &str| parse::<FeedArgs>(line).check().unwrap_err().to_string();
        insta::assert_snapshot!(refusal("feed --saves 0"), @"--saves must be at least 1");
        insta::assert_snapshot!(refusal("feed --tuples 0"), @"--tuples must be from 1 to 10000000");
        insta::assert_snapshot!(refusal("feed --idle 0s"), @"--idle must be more than nothing");
    }

    #[test]
    fn idle_streams_are_the_most_up_to_a_thousand() {
        let idle = |line: &str| parse::<FeedArgs>(line).idle_streams();
        assert_eq!(idle("feed"), Some(1_000));
        assert_eq!(idle("feed --streams 10,20"), Some(20));
        assert_eq!(idle("feed --streams 5000"), None);
    }
}
