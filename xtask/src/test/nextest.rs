//! nextest's lines: one for each test, and the output of the tests that failed.

use std::process::Command;

use anyhow::Result;

use super::board::Phase;
use super::counts::{self, Counts};

/// So that `nextest run` prints the lines that are read here.
pub(crate) const ARGUMENTS: [&str; 6] = [
    "--no-fail-fast",
    "--status-level=pass",
    "--final-status-level=none",
    "--failure-output=immediate",
    "--show-progress=counter",
    "--no-input-handler",
];

/// `PASS [   1.552s] ( 1/10) wakeline-testbed::postgres a_dropped_server_is_gone`
#[derive(Debug, PartialEq)]
struct EndedTest<'a> {
    passed: bool,
    seconds: f64,
    all: u64,
    name: &'a str,
}

pub(crate) fn run_nextest(command: &mut Command, phase: &Phase<'_>) -> Result<Counts> {
    phase.run(command, |line, counts| {
        // The last summary wins: a failed test may have printed one of its own.
        *counts = counts::of_nextest(line).unwrap_or(*counts);
        let ended = ended(line);
        if let Some(ended) = &ended {
            phase.expect(ended.all);
            phase.test(ended.name, ended.seconds, ended.passed);
        }
        ended.is_none_or(|ended| !ended.passed)
    })
}

fn ended(line: &str) -> Option<EndedTest<'_>> {
    let (status, rest) = line.trim_start().split_once(" [")?;
    let (time, rest) = rest.split_once("] ")?;
    let seconds = time.trim().strip_suffix('s')?.parse().ok()?;
    let (_, rest) = rest.strip_prefix('(')?.split_once('/')?;
    let (all, name) = rest.split_once(')')?;
    Some(EndedTest {
        passed: matches!(status, "PASS" | "LEAK"),
        seconds,
        all: all.trim().parse().ok()?,
        name: name.trim(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_test_is_read_from_its_line() {
        let line = "        PASS [   1.552s] ( 1/10) wakeline-testbed::postgres a_server_answers";
        let found = EndedTest {
            passed: true,
            seconds: 1.552,
            all: 10,
            name: "wakeline-testbed::postgres a_server_answers",
        };
        assert_eq!(ended(line), Some(found));
    }

    #[test]
    fn every_other_way_to_end_is_a_failure() {
        for line in [
            "        FAIL [   0.010s] (  2/120) crate::tests a_test",
            "     TIMEOUT [ 180.003s] (119/120) crate::tests a_test",
            "     SIGABRT [   0.010s] (120/120) crate::tests a_test",
        ] {
            let ended = ended(line).unwrap();
            assert!(!ended.passed, "{line}");
            assert_eq!((ended.all, ended.name), (120, "crate::tests a_test"));
        }
    }

    #[test]
    fn a_slow_test_has_not_ended_and_prose_is_no_test() {
        for line in [
            "        SLOW [> 60.000s] (─────────) crate::tests a_test",
            "     Summary [   9.883s] 10 tests run: 10 passed, 0 skipped",
            "    Starting 10 tests across 1 binary (1 binary skipped)",
        ] {
            assert_eq!(ended(line), None, "{line}");
        }
    }
}
