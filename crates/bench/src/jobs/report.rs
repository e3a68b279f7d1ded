//! The report: what was measured, for a person or as JSON.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::args::JobsArgs;
use super::host::Host;
use super::targets;
use crate::comparison::Comparison;
use crate::figure::Figure;
use crate::units::{as_millis, show_count, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    cold_reads: usize,
    #[serde(rename = "roundMs", serialize_with = "as_millis")]
    round: Duration,
    rounds: usize,
    least_tasks: usize,
    wakes: usize,
    #[serde(rename = "idleMs", serialize_with = "as_millis")]
    idle: Duration,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Report {
    pub(super) fn new(args: &JobsArgs, hosts: &[Host]) -> Self {
        let servers = hosts.iter().map(|host| host.server.name.clone());
        Self::of(args, servers.collect())
    }

    fn of(args: &JobsArgs, servers: Vec<String>) -> Self {
        Self {
            cold_reads: args.cold,
            round: args.seconds,
            rounds: args.rounds,
            least_tasks: args.tasks,
            wakes: args.wakes,
            idle: args.idle,
            comparison: Comparison::of(servers),
        }
    }

    pub(super) fn add(&mut self, server: usize, figures: Vec<Figure>) {
        self.comparison.add(server, figures);
    }

    pub(super) fn finish(&mut self, hosts: &[Host]) {
        let servers = hosts.iter().map(|host| &host.server);
        self.comparison.finish(servers, targets::judge);
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.comparison.trouble()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "{} cold reads, {} rounds of {} of warm reads, {} tasks or as many as fill {}, {} task \
             wakes, idle for {}\n",
            show_count(self.cold_reads),
            self.rounds,
            show_duration(self.round),
            show_count(self.least_tasks),
            show_duration(self.round * self.rounds as u32),
            show_count(self.wakes),
            show_duration(self.idle),
        )?;
        self.comparison.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::figure::Unit;
    use crate::jobs::ground::{UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: JobsArgs,
    }

    fn report(servers: &[&str], figures: &[(&str, Unit, &[f64])]) -> Report {
        let args = Cli::parse_from(["jobs"]).args;
        let servers = servers.iter().map(|&name| name.to_owned()).collect();
        let mut report = Report::of(&args, servers);
        for (name, unit, values) in figures {
            for (server, value) in values.iter().enumerate() {
                report.add(server, vec![Figure::new(*name, *unit, *value)]);
            }
        }
        report.finish(&[]);
        report
    }

    const FIGURES: [(&str, Unit, &[f64]); 8] = [
        ("cold read, p50", Unit::Millis, &[27.0, 8.0, 10.0]),
        ("  cold read, p99", Unit::Millis, &[40.0, 12.0, 11.0]),
        (
            "warm read of 200 bytes, 64 connections",
            Unit::ReadsPerSecond,
            &[110.0, 33_000.0, 11_000.0],
        ),
        (
            "held reads, distinct keys",
            Unit::Reads,
            &[600.0, 10_000.0, 10_000.0],
        ),
        (
            "held reads, distinct keys, memory of each",
            Unit::Bytes,
            &[40_000.0, 12_000.0, 15_400.0],
        ),
        (
            "tasks, 4 workers",
            Unit::TasksPerSecond,
            &[14.2, 1_420.0, 426.0],
        ),
        (
            "tasks, 4 workers with held claims",
            Unit::TasksPerSecond,
            &[],
        ),
        (
            "task wake p99, from change sent",
            Unit::Millis,
            &[1_000.0, 5.0, 25.0],
        ),
    ];

    #[test]
    fn each_wakeline_is_judged_beside_upstream() {
        let servers = [UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE];
        insta::assert_snapshot!(report(&servers, &FIGURES), @"");
    }

    #[test]
    fn alone_it_is_judged_by_what_it_promises_by_itself() {
        let memory = ("held reads, one key, memory of each", Unit::Bytes, &[9e3][..]);
        insta::assert_snapshot!(report(&[WAKELINE_SQLITE], &[memory]), @"");
    }
}
