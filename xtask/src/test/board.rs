//! The phases of a run: their progress while they run, and their results.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Result, ensure};

use super::counts::{Counts, plain};
use crate::interrupt::{self, Interrupted};
use crate::run::{Line, run};

const REPORT_INTERVAL: Duration = Duration::from_secs(20);
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// How many tests the list of the slowest has.
const SLOWEST: usize = 10;

pub(crate) struct Board {
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    phases: Vec<Row>,
    tests: Vec<(f64, String)>,
    is_over: bool,
}

struct Row {
    name: String,
    began: Instant,
    took: Option<Duration>,
    ended: u64,
    expected: u64,
    counts: Counts,
}

/// Ends the progress reports, also when the work panics.
struct EndOnDrop<'a>(&'a Board);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
    }
}

/// A phase that runs, with its row on the board.
pub(crate) struct Phase<'a> {
    board: &'a Board,
    row: usize,
    name: &'a str,
}

impl Board {
    pub(crate) fn new() -> Board {
        Board {
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Prints the progress of the running phases at an interval until `work` has ended.
    pub(crate) fn while_reporting<T>(&self, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut reported = Instant::now();
                while !self.state().is_over {
                    if reported.elapsed() >= REPORT_INTERVAL {
                        self.print_line(&self.progress());
                        reported = Instant::now();
                    }
                    thread::sleep(CHECK_INTERVAL);
                }
            });
            let _over = EndOnDrop(self);
            work()
        })
    }

    /// Runs one phase and returns whether it succeeded. Its error is shown and counted here; only an
    /// interruption is returned.
    pub(crate) fn phase(
        &self,
        name: &str,
        work: impl FnOnce(&Phase<'_>) -> Result<Counts>,
    ) -> Result<bool> {
        let began = Instant::now();
        let row = {
            let mut state = self.state();
            state.phases.push(Row {
                name: name.to_owned(),
                began,
                took: None,
                ended: 0,
                expected: 0,
                counts: Counts::none(),
            });
            state.phases.len() - 1
        };
        self.print_line(&format!("{name} begins"));
        let board = self;
        let result = work(&Phase { board, row, name });
        // A program that a Ctrl-C ends may report a failure, which does not count.
        interrupt::check()?;
        let counts = match result {
            Ok(counts) => counts,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                self.print_line(&format!("{name}: {error:#}"));
                Counts::without_tests(false)
            }
        };
        let took = began.elapsed();
        let failed = counts.failed.unwrap_or(0);
        let how = match (counts.passed, failed) {
            (None, 0) => "is done".to_owned(),
            (None, _) => "FAILED".to_owned(),
            (Some(passed), 0) => format!("is done, {passed} passed"),
            (Some(passed), failed) => format!("FAILED, {passed} passed, {failed} failed"),
        };
        self.print_line(&format!("{name} {how}, in {}", clock(took)));
        let mut state = self.state();
        state.phases[row].took = Some(took);
        state.phases[row].counts = counts;
        Ok(failed == 0)
    }

    pub(crate) fn total(&self) -> Counts {
        let state = self.state();
        let phases = state.phases.iter();
        phases.fold(Counts::new(0, 0), |sum, phase| sum.and(Some(phase.counts)))
    }

    /// Prints the table of the phases, the slowest tests, and the line `N passed, N failed`.
    pub(crate) fn print(&self) {
        println!("\n{}{}", self.table(), self.slowest());
        let total = self.total();
        println!(
            "{} passed, {} failed",
            total.passed.unwrap_or(0),
            total.failed.unwrap_or(0)
        );
    }

    fn progress(&self) -> String {
        let state = self.state();
        let running = state.phases.iter().filter(|row| row.took.is_none());
        let running: Vec<String> = running
            .map(|row| match (row.ended, row.expected) {
                (0, 0) => format!("{} {}", row.name, clock(row.began.elapsed())),
                (ended, 0) => format!("{} {ended}", row.name),
                (ended, expected) => format!("{} {ended}/{expected}", row.name),
            })
            .collect();
        format!("  … {}", running.join(", "))
    }

    fn print_line(&self, text: &str) {
        use io::Write;
        // A closed terminal must not stop the tests.
        let _ = writeln!(io::stdout(), "[{:>5}] {text}", clock(self.began.elapsed()));
    }

    fn table(&self) -> String {
        let state = self.state();
        let names = state.phases.iter().map(|phase| phase.name.chars().count());
        let width = names.max().unwrap_or(0).max("everything".len());
        let mut table = format!(
            "{:<width$} {:>8} {:>8} {:>8} {:>8}\n",
            "phase", "began", "took", "passed", "failed"
        );
        for phase in &state.phases {
            table += &format!(
                "{:<width$} {:>8} {:>8} {:>8} {:>8}\n",
                phase.name,
                clock(phase.began.saturating_duration_since(self.began)),
                phase.took.map_or_else(String::new, clock),
                cell(phase.counts.passed),
                cell(phase.counts.failed)
            );
        }
        table += &format!(
            "{:<width$} {:>8} {:>8}\n",
            "everything",
            "",
            clock(self.began.elapsed())
        );
        table
    }

    fn slowest(&self) -> String {
        let mut state = self.state();
        state.tests.sort_by(|a, b| b.0.total_cmp(&a.0));
        if state.tests.is_empty() {
            return String::new();
        }
        let slowest = state.tests.iter().take(SLOWEST);
        let lines = slowest.map(|(seconds, name)| format!("{seconds:>8.1} s  {name}\n"));
        format!("\nthe slowest tests\n{}", lines.collect::<String>())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Phase<'_> {
    /// The phase has so many tests.
    pub(crate) fn expect(&self, all: u64) {
        self.board.state().phases[self.row].expected = all;
    }

    /// One test has ended, or one crate was compiled.
    pub(crate) fn ended(&self) {
        self.board.state().phases[self.row].ended += 1;
    }

    /// A test has ended; a failure is printed at once.
    pub(crate) fn test(&self, name: &str, seconds: f64, passed: bool) {
        self.ended();
        if !passed {
            self.board
                .print_line(&format!("{}: FAILED {name}", self.name));
        }
        let name = format!("{}: {name}", self.name);
        self.board.state().tests.push((seconds, name));
    }

    /// Runs a test runner. `read` gets each line without its colours, keeps the counts, and returns
    /// whether the line is shown when the runner has failed.
    pub(crate) fn run(
        &self,
        command: &mut Command,
        mut read: impl FnMut(&str, &mut Counts) -> bool,
    ) -> Result<Counts> {
        let (mut counts, mut lines) = (Counts::none(), Vec::new());
        let status = run(command, |line| {
            let (Line::Out(line) | Line::Err(line)) = line;
            if read(&plain(&line), &mut counts) {
                lines.push(line);
            }
        })?;
        let counts = counts.with_status(status);
        if counts.passed.is_none() || counts.failed.unwrap_or(0) > 0 {
            self.show(&lines);
        }
        ensure!(
            counts.passed.is_some(),
            "it printed no line with its counts ({status})"
        );
        Ok(counts)
    }

    /// Prints the lines of a phase that failed, in one piece.
    pub(crate) fn show(&self, lines: &[String]) {
        let text = lines.join("\n");
        self.board.print_line(&format!("{}:\n{text}", self.name));
    }
}

/// `12:05`
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn cell(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failed_phase_without_a_count_is_one_failure() {
        let board = Board::new();
        board.phase("tests", |_| Ok(Counts::new(7, 2))).unwrap();
        let succeeded = board.phase("build", |_| bail!("no compiler")).unwrap();
        assert!(!succeeded);
        assert_eq!(board.total(), Counts::new(7, 3));
    }

    #[test]
    fn an_interruption_ends_the_run() {
        let ended = Board::new().phase("tests", |_| Err(Interrupted.into()));
        assert!(ended.unwrap_err().is::<Interrupted>());
    }

    #[test]
    fn the_table_keeps_uncounted_and_zero_apart() {
        let board = Board::new();
        board.phase("check", |_| Ok(Counts::none())).unwrap();
        board.phase("doc tests", |_| Ok(Counts::new(3, 0))).unwrap();
        let table = board.table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "phase         began     took   passed   failed");
        assert_eq!(lines[1], "check          0:00     0:00        -        -");
        assert_eq!(lines[2], "doc tests      0:00     0:00        3        0");
    }

    #[test]
    fn progress_names_the_running_phases_with_their_counts() {
        let board = Board::new();
        let succeeded = board.phase("tests", |phase| {
            phase.expect(12);
            phase.test("one", 0.1, true);
            assert_eq!(board.progress(), "  … tests 1/12");
            Ok(Counts::new(1, 0))
        });
        assert!(succeeded.unwrap());
        assert_eq!(board.progress(), "  … ");
    }

    #[test]
    fn the_slowest_tests_of_all_phases_come_first() {
        let board = Board::new();
        let succeeded = board.phase("tests", |phase| {
            for number in 0..20_u32 {
                phase.test(&format!("number {number}"), f64::from(number), true);
            }
            Ok(Counts::new(20, 0))
        });
        assert!(succeeded.unwrap());
        let slowest = board.slowest();
        let lines: Vec<&str> = slowest.trim_start().lines().collect();
        assert_eq!(lines.len(), 1 + SLOWEST);
        assert_eq!(lines[1], "    19.0 s  tests: number 19");
    }
}
