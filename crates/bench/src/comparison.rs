//! Contestants side by side: a row for each figure, what failed, and the targets.

use std::fmt::{Display, Formatter, Result};

use serde::Serialize;

use crate::failures::FailureSummary;
use crate::figure::{Figure, Row};
use crate::target::{self, Goals, Target};
use crate::units::show_count;

const MIN_NAME_WIDTH: usize = 44;
const MIN_UNIT_WIDTH: usize = 13;
const VALUE_WIDTH: usize = 22;
const RATIO_WIDTH: usize = 7;

#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    #[serde(flatten)]
    contestants: Contestants,
    rows: Vec<Row>,
    targets: Vec<Target>,
    /// For each contestant.
    failures: Vec<FailureSummary>,
    #[serde(skip)]
    goals: Goals,
}

/// Their names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Contestants {
    Servers(Vec<String>),
    /// Of duroxide.
    Providers(Vec<String>),
    CommitModes(Vec<String>),
}

impl Comparison {
    pub(crate) fn new(contestants: Contestants, goals: Goals) -> Self {
        Self {
            contestants,
            rows: Vec::new(),
            targets: Vec::new(),
            failures: Vec::new(),
            goals,
        }
    }

    fn names(&self) -> &[String] {
        match &self.contestants {
            Contestants::Servers(names)
            | Contestants::Providers(names)
            | Contestants::CommitModes(names) => names,
        }
    }

    /// Puts the figures of one contestant into their rows, and makes the rows that are missing.
    pub(crate) fn add(&mut self, column: usize, figures: Vec<Figure>) {
        let columns = self.names().len();
        for Figure { name, unit, value } in figures {
            let existing = self.rows.iter().position(|row| row.name == name);
            let index = existing.unwrap_or_else(|| {
                self.rows.push(Row {
                    name,
                    unit,
                    values: vec![None; columns],
                });
                self.rows.len() - 1
            });
            self.rows[index].values[column] = value;
        }
    }

    /// `failures` are those of each contestant.
    pub(crate) fn finish(&mut self, failures: Vec<FailureSummary>) {
        self.failures = failures;
        self.targets = self.goals.judge(self.names(), &self.rows);
    }

    /// The failures that invalidate the numbers.
    pub(crate) fn trouble(&self) -> Option<String> {
        let what = match self.contestants {
            Contestants::Servers(_) => "requests",
            Contestants::Providers(_) => "orchestrations",
            Contestants::CommitModes(_) => "writes",
        };
        let mut failures = self.names().iter().zip(&self.failures);
        failures.find_map(|(name, summary)| summary.describe(&format!("{what} failed at {name}")))
    }

    /// Ratios are to the reference, or to the first contestant when the reference is not in the run.
    fn baseline(&self) -> usize {
        let mut names = self.names().iter();
        names
            .position(|name| name == self.goals.reference)
            .unwrap_or_default()
    }

    fn write_head(&self, f: &mut Formatter<'_>, width: usize) -> Result {
        write!(f, "{:<width$}", "")?;
        for (column, name) in self.names().iter().enumerate() {
            let has_ratio = column != self.baseline();
            let width = VALUE_WIDTH + usize::from(has_ratio) * RATIO_WIDTH;
            write!(f, "{name:>width$}")?;
        }
        writeln!(f)
    }

    fn row(&self, row: &Row) -> String {
        let mut line = String::new();
        for (column, value) in row.values.iter().enumerate() {
            let shown = value.map_or("-".to_owned(), |value| row.unit.show(value));
            line += &format!("{shown:>VALUE_WIDTH$}");
            if column != self.baseline() {
                let ratio = row.ratio(column, self.baseline());
                let ratio = ratio.map(show_ratio).unwrap_or_default();
                line += &format!("{ratio:>RATIO_WIDTH$}");
            }
        }
        line
    }
}

/// With three digits that count, about.
fn show_ratio(ratio: f64) -> String {
    let decimals = match ratio {
        ..0.095 => 3,
        ..9.995 => 2,
        _ => 1,
    };
    format!("{ratio:.decimals$}x")
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let widest = |of: fn(&Row) -> usize| self.rows.iter().map(of).max().unwrap_or_default();
        let name = MIN_NAME_WIDTH.max(widest(|row| row.label().chars().count() + 2));
        let unit = MIN_UNIT_WIDTH.max(widest(|row| row.unit.name.len() + 1));
        self.write_head(f, name + unit)?;
        for row in &self.rows {
            let line = format!(
                "{:<name$}{:<unit$}{}",
                row.label(),
                row.unit.name,
                self.row(row)
            );
            writeln!(f, "{}", line.trim_end())?;
        }
        for (name, summary) in self.names().iter().zip(&self.failures) {
            if let Some(first) = &summary.first {
                let count = show_count(summary.count);
                writeln!(f, "\nFAILED at {name}: {count}; the first: {first}")?;
            }
        }
        target::show(&self.targets, f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::figure::Unit;
    use crate::report::Report;
    use crate::setup::Setup;
    use crate::suite::Benchmark;
    use crate::target::Goal;

    /// The values of each figure are those of the contestants in their order.
    pub(crate) fn finished(
        mut comparison: Comparison,
        figures: &[(&str, Unit, &[f64])],
    ) -> Comparison {
        let columns = comparison.names().len();
        for (name, unit, values) in figures {
            for (column, value) in values.iter().take(columns).enumerate() {
                comparison.add(column, vec![Figure::new(*name, *unit, *value)]);
            }
        }
        comparison.finish(vec![FailureSummary::default(); columns]);
        comparison
    }

    pub(crate) fn empty(benchmark: &impl Benchmark, names: &[&str]) -> Comparison {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        Comparison::new(benchmark.contestants(names), benchmark.goals())
    }

    /// The report of a benchmark whose settings need no database.
    pub(crate) fn compare<B: Benchmark>(
        benchmark: &B,
        names: &[&str],
        figures: &[(&str, Unit, &[f64])],
    ) -> String {
        let report = Report {
            settings: benchmark.settings(&Setup::new(false).unwrap()).unwrap(),
            comparison: finished(empty(benchmark, names), figures),
            note: benchmark.note(),
        };
        report.to_string()
    }

    fn of(names: &[&str]) -> Comparison {
        let goals = Goals {
            reference: "Other",
            ours: &["One of ours", "Another of ours"],
            goals: vec![
                ("saves".to_owned(), Goal::AtLeastTimes(8.0)),
                ("statements, per save".to_owned(), Goal::AtMostTimes(0.5)),
                ("loads".to_owned(), Goal::Ahead),
                ("  loads, p99".to_owned(), Goal::AtMost(5.0)),
                ("never measured".to_owned(), Goal::Ahead),
            ],
        };
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let figures: &[(&str, Unit, &[f64])] = &[
            ("saves", Unit::SAVES_PER_SECOND, &[2_000.0, 16_400.0, 100.0]),
            ("statements, per save", Unit::STATEMENTS, &[4.0, 2.0, 1.0]),
            ("loads", Unit::READS_PER_SECOND, &[500.0, 600.0]),
            ("  loads, p99", Unit::MILLIS, &[4.25, 30.5, 5.5]),
        ];
        finished(Comparison::new(Contestants::Servers(names), goals), figures)
    }

    #[test]
    fn contestants_are_compared_and_ours_are_judged() {
        insta::assert_snapshot!(of(&["Other", "One of ours", "Another of ours"]), @r"
                                                                                  Other                  One of ours              Another of ours
        saves                                       saves/s                       2,000                16,400  8.20x                   100 0.050x
        statements, per save                        statements                      4.0                   2.0  0.50x                   1.0  0.25x
        loads                                       reads/s                         500                   600  1.20x                     -
          p99                                       ms                             4.25                 30.50  7.18x                  5.50  1.29x

        target  One of ours: saves                                        at least 8 times   measured   8.20 times   met
        target  One of ours: statements, per save, statements           at most 0.50 times   measured   0.50 times   met
        target  One of ours: loads                                                   ahead   measured   1.20 times   met
        target  One of ours: loads, p99                                       at most 5 ms   measured        30.50   MISSED by 510 %
        target  Another of ours: saves                                    at least 8 times   measured   0.05 times   MISSED by 99 %
        target  Another of ours: statements, per save, statements       at most 0.50 times   measured   0.25 times   met
        target  Another of ours: loads                                               ahead   measured            -   NOT MEASURED
        target  Another of ours: loads, p99                                   at most 5 ms   measured         5.50   MISSED by 10 %
        4 of 8 targets met
        ");
    }

    #[test]
    fn ratios_are_to_the_reference_in_any_column() {
        insta::assert_snapshot!(of(&["Another of ours", "Other"]), @r"
                                                                               Another of ours                 Other
        saves                                       saves/s                       2,000  0.12x                16,400
        statements, per save                        statements                      4.0  2.00x                   2.0
        loads                                       reads/s                         500  0.83x                   600
          p99                                       ms                             4.25  0.14x                 30.50

        target  Another of ours: saves                                    at least 8 times   measured   0.12 times   MISSED by 98 %
        target  Another of ours: statements, per save, statements       at most 0.50 times   measured   2.00 times   MISSED by 300 %
        target  Another of ours: loads                                               ahead   measured   0.83 times   MISSED by 17 %
        target  Another of ours: loads, p99                                   at most 5 ms   measured         4.25   met
        1 of 4 targets met
        ");
    }

    #[test]
    fn without_the_reference_only_absolute_goals_are_judged() {
        insta::assert_snapshot!(of(&["One of ours"]), @r"
                                                                            One of ours
        saves                                       saves/s                       2,000
        statements, per save                        statements                      4.0
        loads                                       reads/s                         500
          p99                                       ms                             4.25

        target  One of ours: loads, p99                        at most 5 ms   measured         4.25   met
        1 of 1 targets met
        ");
    }

    #[test]
    fn failures_are_shown_and_invalidate_the_numbers() {
        let mut comparison = of(&["Other"]);
        assert_eq!(comparison.trouble(), None);
        comparison.failures[0] = FailureSummary {
            count: 1_234,
            first: Some("push: 503 no".to_owned()),
        };
        insta::assert_snapshot!(comparison, @r"
                                                                                  Other
        saves                                       saves/s                       2,000
        statements, per save                        statements                      4.0
        loads                                       reads/s                         500
          p99                                       ms                             4.25

        FAILED at Other: 1,234; the first: push: 503 no
        ");
        insta::assert_snapshot!(comparison.trouble().unwrap(), @"1234 requests failed at Other; the first: push: 503 no");
    }
}
