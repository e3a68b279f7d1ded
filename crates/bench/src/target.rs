//! What a comparison has to show, and by how much it does or does not.

use std::fmt::{Formatter, Result};

use serde::Serialize;

use crate::figure::Row;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) wanted: String,
    pub(crate) measured: Option<String>,
    pub(crate) verdict: String,
}

/// How a figure of Wakeline has to compare with that of the other.
pub(crate) enum Wanted {
    /// At least so many times the other's.
    Times(f64),
    /// Above the other's.
    Ahead,
    /// At most this share of the other's.
    Share(f64),
    AtMost(f64),
}

impl Wanted {
    pub(crate) fn judge(&self, row: &Row, other: Option<f64>, wakeline: Option<f64>) -> Target {
        let ratio = wakeline
            .zip(other)
            .map(|(wakeline, other)| wakeline / other);
        let (wanted, limit, higher, value) = match *self {
            Self::Times(times) => (format!("at least {times} times"), times, true, ratio),
            Self::Ahead => ("ahead".to_owned(), 1.0, true, ratio),
            Self::Share(share) => (format!("at most {share:.2} times"), share, false, ratio),
            Self::AtMost(most) => {
                let unit = row.unit.name();
                (format!("at most {most} {unit}"), most, false, wakeline)
            }
        };
        let met = value.map(|value| {
            if higher {
                value >= limit
            } else {
                value <= limit
            }
        });
        let verdict = match (met, value) {
            (Some(true), _) => "met".to_owned(),
            (Some(false), Some(value)) => {
                format!("MISSED by {:.0} %", (value / limit - 1.0).abs() * 100.0)
            }
            _ => "NOT MEASURED".to_owned(),
        };
        let measured = value.map(|value| match self {
            Self::AtMost(_) => format!("{value:.2}"),
            _ => format!("{value:.2} times"),
        });
        Target {
            name: row.name.clone(),
            wanted,
            measured,
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
