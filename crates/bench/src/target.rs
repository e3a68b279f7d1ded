//! The goals of a comparison, and how far they are met.

use std::fmt::{Formatter, Result};

use serde::Serialize;

use crate::figure::{Row, Unit};

/// The goals of our contestants, absolute and relative to the reference.
#[derive(Debug)]
pub(crate) struct Goals {
    /// The name of the contestant that the others are compared with.
    pub(crate) reference: &'static str,
    pub(crate) ours: &'static [&'static str],
    /// Each with the name of its figure.
    pub(crate) goals: Vec<(String, Goal)>,
}

/// How a figure of ours has to compare with the reference's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    /// At least so many times the reference's.
    AtLeastTimes(f64),
    /// Above the reference's.
    Ahead,
    /// At most so many times the reference's.
    AtMostTimes(f64),
    /// At most this, independent of the reference.
    AtMost(f64),
}

/// A goal, judged.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    name: String,
    wanted: String,
    measured: Option<String>,
    verdict: String,
}

impl Goals {
    /// A relative goal needs the reference in the run; an absolute one does not.
    pub(crate) fn judge(&self, contestants: &[String], rows: &[Row]) -> Vec<Target> {
        let column = |name: &str| contestants.iter().position(|known| known == name);
        let reference = column(self.reference);
        let ours = self.ours.iter();
        let ours = ours.filter_map(|name| Some((name, column(name)?)));
        let judge_one = |(name, column): (&&str, usize)| {
            let prefix = match self.ours {
                [_] => String::new(),
                _ => format!("{name}: "),
            };
            let mut targets = Vec::new();
            for (figure, goal) in &self.goals {
                let row = rows.iter().find(|row| row.name == *figure);
                let is_judged = reference.is_some() || matches!(goal, Goal::AtMost(_));
                if let Some(row) = row.filter(|_| is_judged) {
                    let other = reference.and_then(|reference| row.value(reference));
                    targets.push(goal.judge(&prefix, row, row.value(column), other));
                }
            }
            targets
        };
        ours.flat_map(judge_one).collect()
    }
}

impl Goal {
    fn judge(self, prefix: &str, row: &Row, own: Option<f64>, other: Option<f64>) -> Target {
        let ratio = own.zip(other).map(|(own, other)| own / other);
        let (wanted, limit, higher, value) = match self {
            Self::AtLeastTimes(times) => (format!("at least {times} times"), times, true, ratio),
            Self::Ahead => ("ahead".to_owned(), 1.0, true, ratio),
            Self::AtMostTimes(times) => (format!("at most {times:.2} times"), times, false, ratio),
            Self::AtMost(most) => (
                format!("at most {most} {}", row.unit.name),
                most,
                false,
                own,
            ),
        };
        let verdict = match value {
            None => "NOT MEASURED".to_owned(),
            Some(value) if higher && value >= limit || !higher && value <= limit => {
                "met".to_owned()
            }
            Some(value) => format!("MISSED by {:.0} %", (value / limit - 1.0).abs() * 100.0),
        };
        let unit = if matches!(self, Self::AtMost(_)) {
            ""
        } else {
            " times"
        };
        let figure = row.name.trim_start();
        Target {
            name: match row.unit {
                Unit::STATEMENTS => format!("{prefix}{figure}, statements"),
                _ => format!("{prefix}{figure}"),
            },
            wanted,
            measured: value.map(|value| format!("{value:.2}{unit}")),
            verdict,
        }
    }
}

/// One line each, and how many are met.
pub(crate) fn show(targets: &[Target], f: &mut Formatter<'_>) -> Result {
    if targets.is_empty() {
        return Ok(());
    }
    let width = targets.iter().map(|one| one.name.chars().count());
    let width = width.max().unwrap_or_default().max(34);
    writeln!(f)?;
    for target in targets {
        let measured = target.measured.as_deref().unwrap_or("-");
        writeln!(
            f,
            "target  {:<width$} {:>24}   measured {measured:>12}   {}",
            target.name, target.wanted, target.verdict
        )?;
    }
    let met = targets.iter().filter(|one| one.verdict == "met").count();
    writeln!(f, "{met} of {} targets met", targets.len())
}
