//! The report: what was measured, for a person or as JSON.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::args::FeedArgs;
use super::targets;
use crate::comparison::Comparison;
use crate::contestant::Contestant;
use crate::figure::Figure;
use crate::units::{as_millis, show_count, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    #[serde(rename = "savingMs", serialize_with = "as_millis")]
    saving: Duration,
    live_saves: usize,
    #[serde(rename = "idleMs", serialize_with = "as_millis")]
    idle: Duration,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Report {
    pub(super) fn new(args: &FeedArgs, servers: &[Contestant]) -> Self {
        let names = servers.iter().map(|server| server.name.clone());
        Self::of(args, names.collect())
    }

    fn of(args: &FeedArgs, servers: Vec<String>) -> Self {
        Self {
            saving: args.seconds,
            live_saves: args.saves,
            idle: args.idle,
            comparison: Comparison::of(servers),
        }
    }

    pub(super) fn add(&mut self, server: usize, figures: Vec<Figure>) {
        self.comparison.add(server, figures);
    }

    pub(super) fn finish(&mut self, servers: &[Contestant]) {
        self.comparison.finish(servers.iter(), targets::judge);
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.comparison.trouble()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "saves for {}, up to {} of them while streams are open, idle for {}; live is from a save \
             sent to its frame\n",
            show_duration(self.saving),
            show_count(self.live_saves),
            show_duration(self.idle),
        )?;
        self.comparison.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::feed::ground::{UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE};
    use crate::figure::Unit;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: FeedArgs,
    }

    const FIGURES: [(&str, Unit, &[f64]); 4] = [
        (
            "saves of one fact, 16 connections",
            Unit::SavesPerSecond,
            &[250.0, 5_000.0, 1_000.0],
        ),
        (
            "backfill of 10,000 tuples",
            Unit::TuplesPerSecond,
            &[4_000.0, 80_000.0, 20_000.0],
        ),
        (
            "live, 1,000 streams, one of them is concerned p99",
            Unit::Millis,
            &[200.0, 6.0, 30.0],
        ),
        (
            "  live, 1,000 streams, one of them is concerned, p50",
            Unit::Millis,
            &[150.0, 3.0, 10.0],
        ),
    ];

    fn report(servers: &[&str]) -> Report {
        let args = Cli::parse_from(["feed"]).args;
        let names = servers.iter().map(|&name| name.to_owned()).collect();
        let mut report = Report::of(&args, names);
        for (name, unit, values) in FIGURES {
            for (server, value) in values.iter().take(servers.len()).enumerate() {
                report.add(server, vec![Figure::new(name, unit, *value)]);
            }
        }
        report.finish(&[]);
        report
    }

    #[test]
    fn each_wakeline_is_judged_beside_upstream() {
        let servers = [UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE];
        insta::assert_snapshot!(report(&servers), @r"
        saves for 5.00 s, up to 200 of them while streams are open, idle for 30.0 s; live is from a save sent to its frame

                                                                                 jinaga-server         Wakeline, PostgreSQL             Wakeline, SQLite
        saves of one fact, 16 connections                  saves/s                         250                 5,000  20.0x                 1,000   4.0x
        backfill of 10,000 tuples                          tuples/s                      4,000                80,000  20.0x                20,000   5.0x
        live, 1,000 streams, one of them is concerned p99  ms                           200.00                  6.00 0.030x                 30.00   0.1x
          p50                                              ms                           150.00                  3.00 0.020x                 10.00 0.067x

        target  Wakeline, PostgreSQL: backfill of 10,000 tuples                                at least 10 times   measured  20.00 times   met
        target  Wakeline, PostgreSQL: live, 1,000 streams, one of them is concerned p99       at most 0.10 times   measured   0.03 times   met
        target  Wakeline, PostgreSQL: saves of one fact, 16 connections                         at least 5 times   measured  20.00 times   met
        target  Wakeline, SQLite: backfill of 10,000 tuples                                    at least 10 times   measured   5.00 times   MISSED by 50 %
        target  Wakeline, SQLite: live, 1,000 streams, one of them is concerned p99           at most 0.10 times   measured   0.15 times   MISSED by 50 %
        target  Wakeline, SQLite: saves of one fact, 16 connections                             at least 5 times   measured   4.00 times   MISSED by 20 %
        3 of 6 targets met
        ");
    }

    #[test]
    fn alone_there_is_nothing_to_compare_it_with() {
        assert!(!report(&[WAKELINE_SQLITE]).to_string().contains("target"));
    }
}
