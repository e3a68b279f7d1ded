//! Arguments that several commands share. Comments on these types are no doc comments, which clap
//! would show as the description of each command.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};

// Of every benchmark that compares. `P` names its phases.
#[derive(Debug, Clone, Args)]
pub struct RunArgs<P: ValueEnum + Send + Sync + 'static> {
    /// Run only these phases [default: all].
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<P>,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

impl<P: ValueEnum + PartialEq + Send + Sync + 'static> RunArgs<P> {
    pub(crate) fn wants(&self, phase: &P) -> bool {
        self.only.is_empty() || self.only.contains(phase)
    }
}

// Of the benchmarks that run beside an upstream server of the same protocol.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Measure the server at this URL [default: servers that are started for the run].
    #[arg(long, conflicts_with_all = ["contestants", "side_by_side"])]
    pub url: Option<String>,
    /// Read the memory of this process of --url instead of /metrics (repeat it for several).
    #[arg(long, requires = "url")]
    pub pid: Vec<u32>,
    /// Count idle statements in this PostgreSQL database of --url instead of /metrics.
    #[arg(long, value_name = "URL", requires = "url")]
    pub postgres: Option<String>,
    /// The servers to start.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "wakeline-sqlite"
    )]
    pub contestants: Vec<ContestantName>,
    /// Start all three servers.
    #[arg(long, conflicts_with = "contestants")]
    pub side_by_side: bool,
    /// The `wakeline` program to start [default: the one beside this program].
    #[arg(long, value_name = "PATH")]
    pub wakeline_bin: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ContestantName {
    /// The server whose protocol Wakeline speaks, on PostgreSQL.
    Upstream,
    WakelinePostgres,
    WakelineSqlite,
}

impl ServerArgs {
    pub(crate) fn starts(&self, contestant: ContestantName) -> bool {
        self.url.is_none() && (self.side_by_side || self.contestants.contains(&contestant))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    Sqlite,
    Postgres,
}

pub(crate) fn check_counts(counts: &[(&str, usize)]) -> anyhow::Result<()> {
    for (flag, count) in counts {
        ensure!(*count > 0, "{flag} must be at least 1");
    }
    Ok(())
}

/// Each flag with its numbers and the largest that it may have.
pub(crate) fn check_lists(lists: &[(&str, &[usize], usize)]) -> anyhow::Result<()> {
    for (flag, numbers, most) in lists {
        ensure!(!numbers.is_empty(), "{flag} names no number");
        ensure!(
            numbers.iter().all(|number| (1..=*most).contains(number)),
            "{flag} must be from 1 to {most}"
        );
    }
    Ok(())
}

pub(crate) fn check_times(times: &[(&str, Duration)]) -> anyhow::Result<()> {
    for (flag, time) in times {
        ensure!(!time.is_zero(), "{flag} must be more than nothing");
    }
    Ok(())
}

/// The arguments of a command line such as `queue --wakes 3`.
#[cfg(test)]
pub(crate) fn parse<A: Args>(line: &str) -> A {
    let command = A::augment_args(clap::Command::new("bench"));
    let matches = command.get_matches_from(line.split_whitespace());
    A::from_arg_matches(&matches).expect("clap has checked them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_started_when_it_is_named_or_all_are_wanted() {
        let starts = |line: &str, name| parse::<ServerArgs>(line).starts(name);
        let (upstream, sqlite) = (ContestantName::Upstream, ContestantName::WakelineSqlite);
        assert!(starts("jobs", sqlite) && !starts("jobs", upstream));
        assert!(starts("jobs --contestants upstream", upstream));
        assert!(!starts("jobs --contestants upstream", sqlite));
        assert!(starts("jobs --side-by-side", sqlite) && starts("jobs --side-by-side", upstream));
        assert!(!starts("jobs --url http://here", sqlite));
    }
}
