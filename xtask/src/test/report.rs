//! The phases of a run, as they went.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::counts::Counts;
use crate::interrupt::{self, Interrupted};

#[derive(Default)]
pub(crate) struct Report {
    phases: Vec<Phase>,
}

struct Phase {
    name: String,
    took: Duration,
    counts: Counts,
}

impl Report {
    /// Runs one phase and returns whether it went well. Its error is shown and
    /// counted here; only an interruption is handed on.
    pub(crate) fn phase(
        &mut self,
        name: &str,
        work: impl FnOnce() -> Result<Counts>,
    ) -> Result<bool> {
        println!("\n{name}");
        let start = Instant::now();
        let result = work();
        // A Ctrl-C may also show as a failure of what it hit; it is none.
        interrupt::check()?;
        let counts = match result {
            Ok(counts) => counts,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                eprintln!("{name}: {error:#}");
                Counts::without_tests(false)
            }
        };
        self.phases.push(Phase {
            name: name.to_owned(),
            took: start.elapsed(),
            counts,
        });
        Ok(counts.failed.unwrap_or(0) == 0)
    }

    pub(crate) fn total(&self) -> Counts {
        self.phases
            .iter()
            .fold(Counts::new(0, 0), |sum, phase| sum.and(Some(phase.counts)))
    }

    pub(crate) fn print(&self) {
        println!("\n{}", self.table());
        let total = self.total();
        println!(
            "{} passed, {} failed",
            total.passed.unwrap_or(0),
            total.failed.unwrap_or(0)
        );
    }

    fn table(&self) -> String {
        let names = self.phases.iter().map(|phase| phase.name.chars().count());
        let width = names.max().unwrap_or(0).max("phase".len());
        let mut table = format!(
            "{:<width$} {:>10} {:>8} {:>8}\n",
            "phase", "time", "passed", "failed"
        );
        for phase in &self.phases {
            table += &format!(
                "{:<width$} {:>8.1} s {:>8} {:>8}\n",
                phase.name,
                phase.took.as_secs_f64(),
                cell(phase.counts.passed),
                cell(phase.counts.failed)
            );
        }
        table
    }
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
        let mut report = Report::default();
        report.phase("tests", || Ok(Counts::new(7, 2))).unwrap();
        let well = report.phase("build", || bail!("no compiler")).unwrap();
        assert!(!well);
        assert_eq!(report.total(), Counts::new(7, 3));
    }

    #[test]
    fn an_interruption_ends_the_run() {
        let mut report = Report::default();
        let ended = report.phase("tests", || Err(Interrupted.into()));
        assert!(ended.unwrap_err().is::<Interrupted>());
    }

    #[test]
    fn the_table_keeps_uncounted_and_zero_apart() {
        let mut report = Report::default();
        report.phase("check", || Ok(Counts::none())).unwrap();
        report.phase("doc tests", || Ok(Counts::new(3, 0))).unwrap();
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "phase           time   passed   failed");
        assert_eq!(lines[1], "check          0.0 s        -        -");
        assert_eq!(lines[2], "doc tests      0.0 s        3        0");
    }
}
