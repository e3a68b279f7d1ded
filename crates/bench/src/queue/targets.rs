//! What the side-by-side has to show, and by how much it does or does not.

use serde::Serialize;

use super::figure::Unit;
use super::ground::{QUEEN, WAKELINE_POSTGRES};
use super::idle;
use super::report::Row;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) wanted: String,
    pub(super) measured: Option<String>,
    pub(super) verdict: String,
}

/// How a figure of Wakeline on PostgreSQL has to compare.
enum Wanted {
    /// At least so many times Queen's.
    Times(f64),
    /// Above Queen's.
    Ahead,
    /// At most this share of Queen's.
    Share(f64),
    AtMost(f64),
}

/// None without both servers.
pub(super) fn judge(names: &[String], rows: &[Row]) -> Vec<Target> {
    let place = |name: &str| names.iter().position(|known| known == name);
    let (Some(queen), Some(wakeline)) = (place(QUEEN), place(WAKELINE_POSTGRES)) else {
        return Vec::new();
    };
    [
        ("push, batch 1", Wanted::Times(8.0)),
        ("drain, batch 1", Wanted::Times(20.0)),
        ("push, batch 100", Wanted::Ahead),
        ("drain, batch 100", Wanted::Ahead),
        ("wake p99, from push sent", Wanted::Share(1.0 / 3.0)),
        (idle::NAME, Wanted::AtMost(1.0)),
    ]
    .into_iter()
    .filter_map(|(name, wanted)| {
        let row = rows.iter().find(|row| row.name == name)?;
        let value = |place: usize| row.values.get(place).copied().flatten();
        Some(wanted.target(row, value(queen), value(wakeline)))
    })
    .collect()
}

impl Wanted {
    fn target(&self, row: &Row, queen: Option<f64>, wakeline: Option<f64>) -> Target {
        let ratio = wakeline
            .zip(queen)
            .map(|(wakeline, queen)| wakeline / queen);
        let (wanted, limit, higher, value) = match *self {
            Self::Times(times) => (format!("at least {times} times"), times, true, ratio),
            Self::Ahead => ("ahead".to_owned(), 1.0, true, ratio),
            Self::Share(share) => (format!("at most {share:.2} times"), share, false, ratio),
            Self::AtMost(most) => {
                let unit = Unit::StatementsPerSecond.name();
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
