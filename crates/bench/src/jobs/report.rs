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

    const FIGURES: [(&str, Unit, &[f64]); 7] = [
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
            "task wake p99, from change sent",
            Unit::Millis,
            &[1_000.0, 5.0, 25.0],
        ),
    ];

    #[test]
    fn each_wakeline_is_judged_beside_upstream() {
        let servers = [UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE];
        insta::assert_snapshot!(report(&servers, &FIGURES), @r"
        200 cold reads, 3 rounds of 2.00 s of warm reads, 400 tasks or as many as fill 6.00 s, 100 task wakes, idle for 10.0 s

                                                                          zndraw-joblib         Wakeline, PostgreSQL             Wakeline, SQLite
        cold read, p50                              ms                            27.00                  8.00   0.3x                 10.00   0.4x
          p99                                       ms                            40.00                 12.00   0.3x                 11.00   0.3x
        warm read of 200 bytes, 64 connections      reads/s                         110                33,000 300.0x                11,000 100.0x
        held reads, distinct keys                   reads                           600                10,000  16.7x                10,000  16.7x
        held reads, distinct keys, memory of each   bytes                        40,000                12,000   0.3x                15,400   0.4x
        tasks, 4 workers                            tasks/s                        14.2                1420.0 100.0x                 426.0  30.0x
        task wake p99, from change sent             ms                          1000.00                  5.00 0.005x                 25.00 0.025x

        target  Wakeline, PostgreSQL: warm read of 200 bytes, 64 connections          at least 200 times   measured 300.00 times   met
        target  Wakeline, PostgreSQL: cold read, p50                                  at most 0.33 times   measured   0.30 times   met
        target  Wakeline, PostgreSQL: tasks, 4 workers                                 at least 30 times   measured 100.00 times   met
        target  Wakeline, PostgreSQL: task wake p99, from change sent                 at most 0.02 times   measured   0.01 times   met
        target  Wakeline, PostgreSQL: held reads, distinct keys, memory of each      at most 14000 bytes   measured     12000.00   met
        target  Wakeline, SQLite: warm read of 200 bytes, 64 connections              at least 200 times   measured 100.00 times   MISSED by 50 %
        target  Wakeline, SQLite: cold read, p50                                      at most 0.33 times   measured   0.37 times   MISSED by 11 %
        target  Wakeline, SQLite: tasks, 4 workers                                     at least 30 times   measured  30.00 times   met
        target  Wakeline, SQLite: task wake p99, from change sent                     at most 0.02 times   measured   0.03 times   MISSED by 25 %
        target  Wakeline, SQLite: held reads, distinct keys, memory of each          at most 14000 bytes   measured     15400.00   MISSED by 10 %
        6 of 10 targets met
        ");
    }

    #[test]
    fn alone_it_is_judged_by_what_it_promises_by_itself() {
        let memory = (
            "held reads, one key, memory of each",
            Unit::Bytes,
            &[9e3][..],
        );
        insta::assert_snapshot!(report(&[WAKELINE_SQLITE], &[memory]), @r"
        200 cold reads, 3 rounds of 2.00 s of warm reads, 400 tasks or as many as fill 6.00 s, 100 task wakes, idle for 10.0 s

                                                                       Wakeline, SQLite
        held reads, one key, memory of each         bytes                         9,000

        target  Wakeline, SQLite: held reads, one key, memory of each      at most 14000 bytes   measured      9000.00   met
        1 of 1 targets met
        ");
    }
}
