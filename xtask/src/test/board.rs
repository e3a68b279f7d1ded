//! The phases of a run: what is under way and how far it is, said as it goes, and how each went.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::Result;

use super::counts::Counts;
use crate::interrupt::{self, Interrupted};

/// How often it is said how far everything is.
const SAY_EVERY: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);
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

/// Ends the saying, also when the work panics.
struct EndOnDrop<'a>(&'a Board);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
    }
}

/// What a phase says of itself while it runs.
pub(crate) struct Phase<'a> {
    board: &'a Board,
    at: usize,
    name: &'a str,
}

impl Board {
    pub(crate) fn new() -> Board {
        Board {
            began: Instant::now(),
            state: Mutex::default(),
        }
    }

    /// Says how far everything is, again and again, until `work` has ended.
    pub(crate) fn while_saying<T>(&self, work: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut said = Instant::now();
                while !self.state().is_over {
                    if said.elapsed() >= SAY_EVERY {
                        self.say(&self.under_way());
                        said = Instant::now();
                    }
                    thread::sleep(LOOK_EVERY);
                }
            });
            let _over = EndOnDrop(self);
            work()
        })
    }

    /// Runs one phase and returns whether it went well. Its error is shown and counted here; only
    /// an interruption is handed on.
    pub(crate) fn phase(
        &self,
        name: &str,
        work: impl FnOnce(&Phase<'_>) -> Result<Counts>,
    ) -> Result<bool> {
        let began = Instant::now();
        let at = {
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
        self.say(&format!("{name} begins"));
        let board = self;
        let result = work(&Phase { board, at, name });
        // A Ctrl-C may also show as a failure of what it hit; it is none.
        interrupt::check()?;
        let counts = match result {
            Ok(counts) => counts,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                self.say(&format!("{name}: {error:#}"));
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
        self.say(&format!("{name} {how}, in {}", clock(took)));
        let mut state = self.state();
        state.phases[at].took = Some(took);
        state.phases[at].counts = counts;
        Ok(failed == 0)
    }

    pub(crate) fn total(&self) -> Counts {
        let state = self.state();
        let phases = state.phases.iter();
        phases.fold(Counts::new(0, 0), |sum, phase| sum.and(Some(phase.counts)))
    }

    /// The tables; then the line that everyone looks for.
    pub(crate) fn print(&self) {
        println!("\n{}{}", self.table(), self.slowest());
        let total = self.total();
        println!(
            "{} passed, {} failed",
            total.passed.unwrap_or(0),
            total.failed.unwrap_or(0)
        );
    }

    fn under_way(&self) -> String {
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

    fn say(&self, text: &str) {
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
    /// So many are to come.
    pub(crate) fn expect(&self, all: u64) {
        self.board.state().phases[self.at].expected = all;
    }

    /// One of them has ended.
    pub(crate) fn ended(&self) {
        self.board.state().phases[self.at].ended += 1;
    }

    /// A test has ended; one that failed is told at once.
    pub(crate) fn test(&self, name: &str, seconds: f64, passed: bool) {
        self.ended();
        if !passed {
            self.board.say(&format!("{}: FAILED {name}", self.name));
        }
        let name = format!("{}: {name}", self.name);
        self.board.state().tests.push((seconds, name));
    }

    /// What a phase that failed has to say, in one piece.
    pub(crate) fn show(&self, lines: &[String]) {
        let text = lines.join("\n");
        self.board.say(&format!("{}:\n{text}", self.name));
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
        let well = board.phase("build", |_| bail!("no compiler")).unwrap();
        assert!(!well);
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
    fn what_is_under_way_is_said_with_how_far_it_is() {
        let board = Board::new();
        let said = board.phase("tests", |phase| {
            phase.expect(12);
            phase.test("one", 0.1, true);
            assert_eq!(board.under_way(), "  … tests 1/12");
            Ok(Counts::new(1, 0))
        });
        assert!(said.unwrap());
        assert_eq!(board.under_way(), "  … ");
    }

    #[test]
    fn the_slowest_tests_of_all_phases_come_first() {
        let board = Board::new();
        let well = board.phase("tests", |phase| {
            for number in 0..20_u32 {
                phase.test(&format!("number {number}"), f64::from(number), true);
            }
            Ok(Counts::new(20, 0))
        });
        assert!(well.unwrap());
        let slowest = board.slowest();
        let lines: Vec<&str> = slowest.trim_start().lines().collect();
        assert_eq!(lines.len(), 1 + SLOWEST);
        assert_eq!(lines[1], "    19.0 s  tests: number 19");
    }
}
