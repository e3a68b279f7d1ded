//! The report: what was measured, for a person or as JSON.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::REFERENCE;
use super::args::{DurableArgs, WITH_PEERS};
use super::contestant::Contestant;
use super::targets;
use crate::failures::Seen;
use crate::figure::{Figure, Row};
use crate::target::{self, Target};
use crate::units::{as_millis, show_count, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    postgres: String,
    #[serde(rename = "idleMs", serialize_with = "as_millis")]
    idle: Duration,
    workflows: usize,
    timers: usize,
    #[serde(rename = "timeMs", serialize_with = "as_millis")]
    time: Duration,
    in_flight: usize,
    providers: Vec<&'static str>,
    rows: Vec<Row>,
    targets: Vec<Target>,
    /// For each provider.
    failures: Vec<Seen>,
    #[serde(skip)]
    has_peers: bool,
}

impl Report {
    /// `has_peers` says whether this program has any, measured or not.
    pub(super) fn new(
        args: &DurableArgs,
        providers: &[&'static str],
        postgres: String,
        has_peers: bool,
    ) -> Self {
        Self {
            postgres,
            idle: args.idle,
            workflows: args.workflows,
            timers: args.timers,
            time: args.seconds,
            in_flight: args.in_flight,
            providers: providers.to_vec(),
            rows: Vec::new(),
            targets: Vec::new(),
            failures: vec![Seen::default(); providers.len()],
            has_peers,
        }
    }

    pub(super) fn add(&mut self, provider: usize, figures: Vec<Figure>) {
        Row::add(&mut self.rows, figures, provider, self.providers.len());
    }

    pub(super) fn finish(&mut self, contestants: &[Contestant]) {
        self.failures = contestants.iter().map(|one| one.failures.seen()).collect();
        self.targets = targets::judge(&self.providers, &self.rows);
    }

    /// What spoils the numbers.
    pub(super) fn trouble(&self) -> Option<String> {
        let (provider, seen) = self
            .providers
            .iter()
            .zip(&self.failures)
            .find(|(_, seen)| seen.count > 0)?;
        let first = seen.first.as_deref().unwrap_or_default();
        Some(format!(
            "{} orchestrations failed at {provider}; the first: {first}",
            seen.count
        ))
    }

    fn row(&self, f: &mut Formatter<'_>, row: &Row, reference: Option<usize>) -> Result {
        let mut line = format!("{:<50}{:<17}", row.shown(), row.unit.name());
        for (place, value) in row.values.iter().enumerate() {
            let shown = value.map_or("-".to_owned(), |value| row.unit.show(value));
            line += &format!("{shown:>18}");
            if let Some(reference) = reference.filter(|reference| *reference != place) {
                let ratio = row
                    .ratio(place, reference)
                    .map_or(String::new(), |ratio| format!("{ratio:.2}x"));
                line += &format!("{ratio:>8}");
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "PostgreSQL {}; idle for {}, {} workflows, {} timers, {} in flight for {}\n",
            self.postgres,
            show_duration(self.idle),
            show_count(self.workflows),
            show_count(self.timers),
            show_count(self.in_flight),
            show_duration(self.time)
        )?;
        let reference = self.providers.iter().position(|name| *name == REFERENCE);
        write!(f, "{:<67}", "")?;
        for (place, provider) in self.providers.iter().enumerate() {
            write!(f, "{provider:>18}")?;
            let has_ratio = reference.is_some_and(|reference| reference != place);
            // No spaces at the end of a line.
            if has_ratio && place + 1 < self.providers.len() {
                write!(f, "{:8}", "")?;
            }
        }
        writeln!(f)?;
        for row in &self.rows {
            self.row(f, row, reference)?;
        }
        for (provider, seen) in self.providers.iter().zip(&self.failures) {
            if let Some(first) = &seen.first {
                let count = show_count(seen.count);
                writeln!(f, "\nFAILED at {provider}: {count}; the first: {first}")?;
            }
        }
        target::show(&self.targets, f)?;
        if !self.has_peers {
            writeln!(f, "\nbeside duroxide-pg and duroxide-pg-opt: {WITH_PEERS}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::durable::WAKELINE;
    use crate::figure::Unit;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: DurableArgs,
    }

    fn report(providers: &[&'static str], figures: &[(&str, Unit, &[f64])]) -> Report {
        let args = Cli::parse_from(["durable"]).args;
        let mut report = Report::new(&args, providers, "15.1".to_owned(), providers.len() > 1);
        for (name, unit, values) in figures {
            for (provider, value) in values.iter().enumerate() {
                report.add(provider, vec![Figure::new(*name, *unit, *value)]);
            }
        }
        report.targets = targets::judge(&report.providers, &report.rows);
        report
    }

    #[test]
    fn providers_stand_side_by_side_and_are_judged_by_the_reference() {
        let report = report(
            &[WAKELINE, REFERENCE, "duroxide-pg"],
            &[
                ("idle", Unit::StatementsPerSecond, &[0.05, 0.3, 39.6]),
                (
                    "  idle, transactions",
                    Unit::TransactionsPerSecond,
                    &[0.1, 1.5, 40.0],
                ),
                (
                    "one activity, to its last turn, p50",
                    Unit::Millis,
                    &[8.0, 30.0, 150.0],
                ),
                (
                    "one activity, as a woken caller sees it, p50",
                    Unit::Millis,
                    &[9.0],
                ),
                ("timer lateness, p50", Unit::Millis, &[2.5, 104.0, 80.0]),
                ("  timer lateness, p99", Unit::Millis, &[12.5, 134.0, 105.0]),
                ("stress", Unit::OrchestrationsPerSecond, &[60.0, 24.0, 20.0]),
                (
                    "stress, per orchestration",
                    Unit::Statements,
                    &[11.0, 44.0, 48.0],
                ),
                (
                    "  stress, write-ahead log per orchestration",
                    Unit::Bytes,
                    &[15_000.0, 20_000.0, 22_000.0],
                ),
            ],
        );
        insta::assert_snapshot!(report, @r"
        PostgreSQL 15.1; idle for 60.0 s, 200 workflows, 200 timers, 20 in flight for 10.0 s

                                                                             wakeline-durable           duroxide-pg-opt       duroxide-pg
        idle                                              statements/s                   0.05   0.17x              0.30             39.60 132.00x
          transactions                                    transactions/s                 0.10   0.07x              1.50             40.00  26.67x
        one activity, to its last turn, p50               ms                             8.00   0.27x             30.00            150.00   5.00x
        one activity, as a woken caller sees it, p50      ms                             9.00                         -                 -
        timer lateness, p50                               ms                             2.50   0.02x            104.00             80.00   0.77x
          p99                                             ms                            12.50   0.09x            134.00            105.00   0.78x
        stress                                            orchestrations/s               60.0   2.50x              24.0              20.0   0.83x
        stress, per orchestration                         statements                     11.0   0.25x              44.0              48.0   1.09x
          write-ahead log per orchestration               bytes                        15,000   0.75x            20,000            22,000   1.10x

        target  idle                                  at most 0.1 statements/s   measured         0.05   met
        target  one activity, to its last turn, p50         at most 0.33 times   measured   0.27 times   met
        target  timer lateness, p99                              at most 10 ms   measured        12.50   MISSED by 25 %
        target  stress                                        at least 3 times   measured   2.50 times   MISSED by 17 %
        target  stress, per orchestration, statements       at most 0.50 times   measured   0.25 times   met
        3 of 5 targets met
        ");
    }

    #[test]
    fn alone_it_is_judged_by_what_it_promises_by_itself() {
        let report = report(
            &[WAKELINE],
            &[
                ("idle", Unit::StatementsPerSecond, &[0.05]),
                ("stress", Unit::OrchestrationsPerSecond, &[60.0]),
            ],
        );
        insta::assert_snapshot!(report, @r"
        PostgreSQL 15.1; idle for 60.0 s, 200 workflows, 200 timers, 20 in flight for 10.0 s

                                                                             wakeline-durable
        idle                                              statements/s                   0.05
        stress                                            orchestrations/s               60.0

        target  idle                               at most 0.1 statements/s   measured         0.05   met
        1 of 1 targets met

        beside duroxide-pg and duroxide-pg-opt: cargo run --release --manifest-path peers/Cargo.toml
        ");
    }

    #[test]
    fn a_failed_orchestration_is_trouble() {
        let mut report = report(&[WAKELINE], &[]);
        assert_eq!(report.trouble(), None);
        report.failures[0] = Seen {
            count: 2,
            first: Some("stress: it broke".to_owned()),
        };
        insta::assert_snapshot!(report.trouble().unwrap(), @"2 orchestrations failed at wakeline-durable; the first: stress: it broke");
    }
}
