//! The figures of a measurement.

use std::time::Duration;

use super::wakes::{WakeAll, WakeTimes};
use crate::figure::{Figure, Unit};
use crate::meter::IdleUsage;

pub(super) const MEMORY: &str = "memory per held pop";
pub(super) const STATEMENTS: &str = "statements while idle";
pub(super) const CPU: &str = "processor time while idle";
pub(super) const WAKE_P99: &str = "wake p99, from push answered";

pub(super) struct HoldMeasurements {
    pub(super) waiters: usize,
    /// As the server counts them.
    pub(super) held: Option<u64>,
    pub(super) open_time: Duration,
    /// Empty answers long before the end of the hold.
    pub(super) early_answers: usize,
    /// Still held by the server after all have hung up.
    pub(super) left_behind: Option<u64>,
    pub(super) memory_before: Option<f64>,
    pub(super) idle: IdleUsage,
    pub(super) wakes: WakeTimes,
    pub(super) wake_all: Option<WakeAll>,
}

impl HoldMeasurements {
    pub(super) fn figures(self) -> Vec<Figure> {
        let (before, after) = (self.memory_before, self.idle.memory_bytes);
        let growth = before.zip(after).map(|(before, after)| after - before);
        let pops = |count: Option<u64>| count.map(|count| count as f64);
        let early = self.early_answers as f64;
        let mut figures = vec![
            Figure::new("held, as the server counts", Unit::POPS, pops(self.held)),
            Figure::time("  held, all opened within", self.open_time),
            Figure::new("  held, answered empty too early", Unit::POPS, early),
            Figure::new(
                "  held, still after the end",
                Unit::POPS,
                pops(self.left_behind),
            ),
            Figure::new(
                MEMORY,
                Unit::BYTES,
                growth.map(|bytes| bytes / self.waiters as f64),
            ),
            Figure::new("  memory, of the server before", Unit::BYTES, before),
            Figure::new("  memory, of the server with all pops", Unit::BYTES, after),
            Figure::new(
                STATEMENTS,
                Unit::STATEMENTS_PER_SECOND,
                self.idle.statements_per_second,
            ),
            Figure::new(
                CPU,
                Unit::PERCENT_OF_A_CORE,
                self.idle.cpu_percent_of_a_core,
            ),
        ];
        figures.extend(self.wakes.figures());
        figures.extend(self.wake_all.iter().flat_map(WakeAll::figures));
        figures
    }
}

impl WakeTimes {
    fn figures(self) -> Vec<Figure> {
        let early = self.before_pushed as f64;
        let mut figures = Figure::wakes("wake", "push sent", self.from_sent);
        figures.extend(Figure::wakes("wake", "push answered", self.from_pushed));
        // Such pops count as 0 in the times from the push's answer.
        let name = "  wake, answered before their push";
        figures.push(Figure::new(name, Unit::POPS, early));
        figures
    }
}

impl WakeAll {
    fn figures(&self) -> [Figure; 4] {
        let rate = self.answered as f64 / self.time.as_secs_f64().max(1e-9);
        let answered = self.answered as f64;
        [
            Figure::new("wake of all", Unit::POPS_PER_SECOND, rate),
            Figure::new("  wake of all, answered", Unit::POPS, answered),
            Figure::time("  wake of all, pushed within", self.push_time),
            Figure::time("  wake of all, answered within", self.time),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;
    use crate::comparison::tests::empty;
    use crate::failures::FailureSummary;
    use crate::hold::{HoldArgs, SERVER};
    use crate::meter::Reading;
    use crate::report::Report;
    use crate::setup::Setup;
    use crate::suite::Benchmark;

    fn report(args: &HoldArgs, measurements: HoldMeasurements) -> String {
        let mut comparison = empty(args, &[SERVER]);
        comparison.add(0, measurements.figures());
        comparison.finish(vec![FailureSummary::default()]);
        let settings = args.settings(&Setup::new(false).unwrap()).unwrap();
        let note = None;
        let report = Report {
            settings,
            comparison,
            note,
        };
        report.to_string()
    }

    fn reading(memory_bytes: f64, cpu_seconds: f64, statements: f64) -> Reading {
        Reading {
            memory_bytes: Some(memory_bytes),
            cpu_seconds: Some(cpu_seconds),
            statements: Some(statements),
        }
    }

    #[test]
    fn a_run_is_judged_by_all_its_targets() {
        let args: HoldArgs = parse(
            "hold --target-p99 5ms --target-bytes 14k --target-statements 1 --target-cpu 0.1",
        );
        let (before, after) = (reading(20e6, 1.0, 10.0), reading(90e6, 1.05, 12.0));
        let measurements = HoldMeasurements {
            waiters: args.waiters,
            held: Some(10_000),
            open_time: Duration::from_millis(2500),
            early_answers: 2,
            left_behind: Some(0),
            memory_before: before.memory_bytes,
            idle: IdleUsage::between(&before, &after, Duration::from_secs(10)),
            wakes: WakeTimes {
                from_sent: (1..=200).map(|n| Duration::from_micros(n * 10)).collect(),
                from_pushed: (1..=200).map(Duration::from_micros).collect(),
                before_pushed: 3,
            },
            wake_all: Some(WakeAll {
                answered: 9_999,
                push_time: Duration::from_millis(1900),
                time: Duration::from_secs(2),
            }),
        };
        insta::assert_snapshot!(report(&args, measurements), @r"
        10,000 pops on one queue, HTTP/1.1, a connection each, autoAck
        held by http://127.0.0.1:6632

                                                                                 server
        held, as the server counts                  pops                         10,000
          all opened within                         ms                          2500.00
          answered empty too early                  pops                              2
          still after the end                       pops                              0
        memory per held pop                         bytes                         7,000
          of the server before                      bytes                    20,000,000
          of the server with all pops               bytes                    90,000,000
        statements while idle                       statements/s                   0.20
        processor time while idle                   % of a core                    0.50
        wake p50, from push sent                    ms                             1.00
        wake p90, from push sent                    ms                             1.80
        wake p99, from push sent                    ms                             1.98
        wake max, from push sent                    ms                             2.00
        wake p50, from push answered                ms                             0.10
        wake p90, from push answered                ms                             0.18
        wake p99, from push answered                ms                             0.20
        wake max, from push answered                ms                             0.20
          answered before their push                pops                              3
        wake of all                                 pops/s                        5,000
          answered                                  pops                          9,999
          pushed within                             ms                          1900.00
          answered within                           ms                          2000.00

        target  wake p99, from push answered                   at most 5 ms   measured         0.20   met
        target  memory per held pop                     at most 14000 bytes   measured      7000.00   met
        target  statements while idle                at most 1 statements/s   measured         0.20   met
        target  processor time while idle           at most 0.1 % of a core   measured         0.50   MISSED by 400 %
        3 of 4 targets met
        ");
    }

    #[test]
    fn metrics_that_another_server_lacks_are_not_measured() {
        let args: HoldArgs =
            parse("hold --waiters 5 --topics each --http 2 --lease --target-cpu 3");
        let nothing = Reading::default();
        let measurements = HoldMeasurements {
            waiters: args.waiters,
            held: None,
            open_time: Duration::from_millis(20),
            early_answers: 0,
            left_behind: None,
            memory_before: None,
            idle: IdleUsage::between(&nothing, &nothing, Duration::from_secs(10)),
            wakes: WakeTimes::default(),
            wake_all: None,
        };
        insta::assert_snapshot!(report(&args, measurements), @r"
        5 pops on a queue each, HTTP/2 over 16 connections, leases
        held by http://127.0.0.1:6632

                                                                                 server
        held, as the server counts                  pops                              -
          all opened within                         ms                            20.00
          answered empty too early                  pops                              0
          still after the end                       pops                              -
        memory per held pop                         bytes                             -
          of the server before                      bytes                             -
          of the server with all pops               bytes                             -
        statements while idle                       statements/s                      -
        processor time while idle                   % of a core                       -
        wake p50, from push sent                    ms                                -
        wake p90, from push sent                    ms                                -
        wake p99, from push sent                    ms                                -
        wake max, from push sent                    ms                                -
        wake p50, from push answered                ms                                -
        wake p90, from push answered                ms                                -
        wake p99, from push answered                ms                                -
        wake max, from push answered                ms                                -
          answered before their push                pops                              0

        target  processor time while idle             at most 3 % of a core   measured            -   NOT MEASURED
        0 of 1 targets met
        ");
    }
}
