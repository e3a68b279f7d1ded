//! What the side-by-side has to show, and by how much it does or does not.

use super::ground::{QUEEN, WAKELINE_POSTGRES};
use super::idle;
use crate::figure::Row;
use crate::target::{Target, Wanted};

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
        Some(wanted.judge(row, value(queen), value(wakeline)))
    })
    .collect()
}
