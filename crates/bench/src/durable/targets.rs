//! What our provider has to show, alone and beside the reference.

use super::{REFERENCE, WAKELINE};
use crate::figure::{Row, Unit};
use crate::target::{Target, Wanted};

/// What is compared needs the reference; what is promised by itself does not.
pub(super) fn judge(names: &[&str], rows: &[Row]) -> Vec<Target> {
    let place = |name: &str| names.iter().position(|known| *known == name);
    let (wakeline, reference) = (place(WAKELINE), place(REFERENCE));
    let third = || Wanted::Share(1.0 / 3.0);
    [
        ("idle", Wanted::AtMost(0.1)),
        ("one activity, to its last turn, p50", third()),
        ("one activity, as a polling client sees it, p50", third()),
        ("  timer lateness, p99", Wanted::AtMost(10.0)),
        ("stress", Wanted::Times(3.0)),
        ("fan-out", Wanted::Times(3.0)),
        ("stress, per orchestration", Wanted::Share(0.5)),
        ("fan-out, per orchestration", Wanted::Share(0.5)),
    ]
    .into_iter()
    .filter(|(_, wanted)| reference.is_some() || matches!(wanted, Wanted::AtMost(_)))
    .filter_map(|(name, wanted)| {
        let row = rows.iter().find(|row| row.name == name)?;
        let value = |place: Option<usize>| row.values.get(place?).copied().flatten();
        let mut target = wanted.judge(row, value(reference), value(wakeline));
        target.name = match row.unit {
            Unit::Statements => format!("{}, statements", name.trim_start()),
            _ => name.trim_start().to_owned(),
        };
        Some(target)
    })
    .collect()
}
