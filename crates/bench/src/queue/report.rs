//! The report: what was measured, for a person or as JSON.

use std::fmt::{Display, Formatter, Result};
use std::time::Duration;

use serde::Serialize;

use super::args::QueueArgs;
use super::targets;
use crate::comparison::Comparison;
use crate::contestant::Contestant;
use crate::figure::Figure;
use crate::units::{as_millis, show_duration};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    connections: usize,
    partitions: usize,
    payload_bytes: usize,
    transaction_ids: bool,
    #[serde(rename = "timeMs", serialize_with = "as_millis")]
    time: Duration,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Report {
    pub(super) fn new(args: &QueueArgs, contestants: &[Contestant]) -> Self {
        let servers = contestants.iter().map(|one| one.name.clone()).collect();
        Self::of(args, servers)
    }

    fn of(args: &QueueArgs, servers: Vec<String>) -> Self {
        Self {
            connections: args.connections,
            partitions: args.partitions,
            payload_bytes: args.payload,
            transaction_ids: args.transaction_ids,
            time: args.seconds,
            comparison: Comparison::of(servers),
        }
    }

    pub(super) fn add(&mut self, server: usize, figures: Vec<Figure>) {
        self.comparison.add(server, figures);
    }

    pub(super) fn finish(&mut self, contestants: &[Contestant]) {
        self.comparison.finish(contestants.iter(), targets::judge);
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.comparison.trouble()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(
            f,
            "{} connections, {} partitions, {}-byte payloads{}, {} for each phase\n",
            self.connections,
            self.partitions,
            self.payload_bytes,
            if self.transaction_ids {
                " with transactionIds"
            } else {
                ""
            },
            show_duration(self.time)
        )?;
        self.comparison.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::failures::Seen;
    use crate::figure::Unit;
    use crate::queue::ground::{QUEEN, WAKELINE_POSTGRES};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: QueueArgs,
    }

    fn report(servers: &[&str], figures: &[(&str, Unit, &[f64])]) -> Report {
        let args = Cli::parse_from(["queue"]).args;
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

    #[test]
    fn servers_stand_side_by_side_and_are_judged() {
        let report = report(
            &[QUEEN, WAKELINE_POSTGRES],
            &[
                (
                    "push, batch 1",
                    Unit::MessagesPerSecond,
                    &[2_000.0, 16_400.0],
                ),
                ("  push, batch 1, answer p99", Unit::Millis, &[30.5, 4.25]),
                ("drain, batch 1", Unit::MessagesPerSecond, &[250.0, 4_500.0]),
                ("drain, batch 100", Unit::MessagesPerSecond, &[20_000.0]),
                ("wake p99, from push sent", Unit::Millis, &[24.0, 6.0]),
                (
                    "idle, 100 waiters on 100 queues",
                    Unit::StatementsPerSecond,
                    &[4.4, 1.1],
                ),
            ],
        );
        insta::assert_snapshot!(report, @r"
        50 connections, 50 partitions, 100-byte payloads, 4.00 s for each phase

                                                                                  Queen         Wakeline, PostgreSQL
        push, batch 1                               messages/s                    2,000                16,400   8.2x
          answer p99                                ms                            30.50                  4.25   0.1x
        drain, batch 1                              messages/s                      250                 4,500  18.0x
        drain, batch 100                            messages/s                   20,000                     -
        wake p99, from push sent                    ms                            24.00                  6.00   0.2x
        idle, 100 waiters on 100 queues             statements/s                   4.40                  1.10   0.2x

        target  push, batch 1                              at least 8 times   measured   8.20 times   met
        target  drain, batch 1                            at least 20 times   measured  18.00 times   MISSED by 10 %
        target  drain, batch 100                                      ahead   measured            -   NOT MEASURED
        target  wake p99, from push sent                 at most 0.33 times   measured   0.25 times   met
        target  idle, 100 waiters on 100 queues      at most 1 statements/s   measured         1.10   MISSED by 10 %
        2 of 5 targets met
        ");
        assert_eq!(report.trouble(), None);
    }

    #[test]
    fn one_server_alone_has_no_ratios_and_its_failures_are_told() {
        let figures: &[(&str, Unit, &[f64])] =
            &[("push, batch 1", Unit::MessagesPerSecond, &[9.0])];
        let mut report = report(&["http://127.0.0.1:6632"], figures);
        report.comparison.failures[0] = Seen {
            count: 1_234,
            first: Some("push: 503 no".to_owned()),
        };
        insta::assert_snapshot!(report, @r"
        50 connections, 50 partitions, 100-byte payloads, 4.00 s for each phase

                                                                  http://127.0.0.1:6632
        push, batch 1                               messages/s                        9

        FAILED at http://127.0.0.1:6632: 1,234; the first: push: 503 no
        ");
        insta::assert_snapshot!(report.trouble().unwrap(), @"1234 requests failed at http://127.0.0.1:6632; the first: push: 503 no");
    }
}
