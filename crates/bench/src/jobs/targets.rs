//! What Wakeline has to show, beside zndraw-joblib and by itself.

use super::ground::{UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE};
use super::held::{Keys, memory_name};
use super::tasks::{self, Claims};
use super::warm;
use crate::figure::Row;
use crate::target::{Target, Wanted};

/// At which upstream is no slower than with fewer.
const CONNECTIONS: usize = 64;
const BYTES: usize = 200;

/// For each Wakeline of the run. What is compared needs the other; what is promised by itself does
/// not.
pub(super) fn judge(names: &[String], rows: &[Row]) -> Vec<Target> {
    let place = |name: &str| names.iter().position(|known| known == name);
    let upstream = place(UPSTREAM);
    [WAKELINE_POSTGRES, WAKELINE_SQLITE]
        .into_iter()
        .filter_map(|name| Some((name, place(name)?)))
        .flat_map(|(name, wakeline)| judge_one(name, wakeline, upstream, rows))
        .collect()
}

fn judge_one(name: &str, wakeline: usize, upstream: Option<usize>, rows: &[Row]) -> Vec<Target> {
    let tasks = |workers| tasks::name(workers, Claims::Asking);
    [
        (warm::name(BYTES, CONNECTIONS), Wanted::Times(200.0)),
        ("cold read, p50".to_owned(), Wanted::Share(1.0 / 3.0)),
        (tasks(1), Wanted::Times(30.0)),
        (tasks(4), Wanted::Times(30.0)),
        (tasks(16), Wanted::Times(30.0)),
        (
            "task wake p99, from change sent".to_owned(),
            Wanted::Share(1.0 / 50.0),
        ),
        (memory_name(Keys::Distinct), Wanted::AtMost(14_000.0)),
        (memory_name(Keys::Identical), Wanted::AtMost(14_000.0)),
    ]
    .into_iter()
    .filter(|(_, wanted)| upstream.is_some() || matches!(wanted, Wanted::AtMost(_)))
    .filter_map(|(figure, wanted)| {
        let row = rows.iter().find(|row| row.name == figure)?;
        let value = |place: Option<usize>| row.values.get(place?).copied().flatten();
        let mut target = wanted.judge(row, value(upstream), value(Some(wakeline)));
        target.name = format!("{name}: {figure}");
        Some(target)
    })
    .collect()
}
