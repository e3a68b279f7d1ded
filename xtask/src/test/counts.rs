//! How many passed and failed, read from what the test runners print.

use std::process::ExitStatus;

/// `None` in both means that nothing was counted, which is not zero tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: Option<u64>,
    pub(crate) failed: Option<u64>,
}

impl Counts {
    pub(crate) fn none() -> Counts {
        Counts {
            passed: None,
            failed: None,
        }
    }

    pub(crate) fn new(passed: u64, failed: u64) -> Counts {
        Counts {
            passed: Some(passed),
            failed: Some(failed),
        }
    }

    /// A phase without tests counts only when it fails.
    pub(crate) fn without_tests(succeeded: bool) -> Counts {
        Counts {
            passed: None,
            failed: (!succeeded).then_some(1),
        }
    }

    pub(crate) fn and(self, more: Option<Counts>) -> Counts {
        let Some(more) = more else { return self };
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
        Counts {
            passed: sum(self.passed, more.passed),
            failed: sum(self.failed, more.failed),
        }
    }

    /// A runner that failed without a failed test (it did not compile, it was killed) is one failure.
    pub(crate) fn with_status(self, status: ExitStatus) -> Counts {
        if status.success() || self.failed.unwrap_or(0) > 0 {
            return self;
        }
        Counts {
            passed: self.passed,
            failed: Some(1),
        }
    }
}

/// `Summary [   8.471s] 24 tests run: 22 passed (1 slow), 1 failed, 1 timed out, 3 skipped`
pub(crate) fn of_nextest(line: &str) -> Option<Counts> {
    let summary = line.trim_start().strip_prefix("Summary [")?;
    let (_, results) = summary.split_once(" run: ")?;
    let results = without_parentheses(results);
    let count = |what: &str| {
        results
            .split(',')
            .filter_map(|part| {
                part.trim()
                    .strip_suffix(what)?
                    .trim_end()
                    .parse::<u64>()
                    .ok()
            })
            .sum::<u64>()
    };
    let failed = count("failed") + count("timed out") + count("exec failed");
    Some(Counts::new(count("passed"), failed))
}

/// `test result: ok. 2 passed; 0 failed; 0 ignored; …`, once per crate.
pub(crate) fn of_libtest(line: &str) -> Option<Counts> {
    let (_, results) = line
        .trim()
        .strip_prefix("test result: ")?
        .split_once(". ")?;
    let mut parts = results.split("; ");
    let passed = parts.next()?.strip_suffix(" passed")?.parse().ok()?;
    let failed = parts.next()?.strip_suffix(" failed")?.parse().ok()?;
    Some(Counts::new(passed, failed))
}

/// `N passed, N failed` and nothing else on the line.
pub(crate) fn of_suite(line: &str) -> Option<Counts> {
    let (passed, failed) = line.trim().split_once(", ")?;
    let passed = passed.strip_suffix(" passed")?.parse().ok()?;
    let failed = failed.strip_suffix(" failed")?.parse().ok()?;
    Some(Counts::new(passed, failed))
}

/// `22 passed (1 slow, 1 flaky)` is one count: its remark has a comma too.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

/// Without terminal colours.
pub(crate) fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn nextest_counts_every_way_to_fail() {
        let line = "     Summary [   8.471s] 27 tests run: 22 passed (1 slow, 2 flaky), \
                    3 failed, 1 timed out, 1 exec failed, 4 skipped";
        assert_eq!(of_nextest(line), Some(Counts::new(22, 5)));
    }

    #[test]
    fn colours_are_removed() {
        let line = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m3\u{1b}[0m tests run: \
                    \u{1b}[1m3\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped";
        assert_eq!(of_nextest(&plain(line)), Some(Counts::new(3, 0)));
    }

    #[test]
    fn a_cancelled_nextest_still_counts() {
        let line = "Summary [ 1.0s] 3/12 tests run: 2 passed, 1 failed, 0 skipped";
        assert_eq!(of_nextest(line), Some(Counts::new(2, 1)));
    }

    #[test]
    fn other_lines_of_nextest_are_no_summary() {
        assert_eq!(
            of_nextest("        PASS [   0.006s] (1/24) x summary"),
            None
        );
    }

    #[test]
    fn doc_tests_of_all_crates_add_up() {
        let one = "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured";
        let two = "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured";
        let sum = Counts::none().and(of_libtest(one)).and(of_libtest(two));
        assert_eq!(sum, Counts::new(3, 3));
    }

    #[test]
    fn a_suite_ends_with_its_counts_alone_on_a_line() {
        assert_eq!(of_suite("12 passed, 1 failed"), Some(Counts::new(12, 1)));
        assert_eq!(of_suite("so far 12 passed, 1 failed"), None);
    }

    #[test]
    fn a_runner_that_fails_without_a_failed_test_is_one_failure() {
        let failure = ExitStatus::from_raw(256);
        assert_eq!(Counts::none().with_status(failure).failed, Some(1));
        assert_eq!(Counts::new(4, 0).with_status(failure), Counts::new(4, 1));
        assert_eq!(Counts::new(4, 2).with_status(failure), Counts::new(4, 2));
    }

    #[test]
    fn a_runner_that_succeeds_has_the_failures_that_it_counts() {
        let success = ExitStatus::from_raw(0);
        assert_eq!(Counts::new(4, 0).with_status(success), Counts::new(4, 0));
    }
}
