//! What Wakeline has to show beside jinaga-server.

use super::ground::{UPSTREAM, WAKELINE_POSTGRES, WAKELINE_SQLITE};
use super::live::{Givens, p99_name};
use super::{backfill, save};
use crate::figure::Row;
use crate::target::{Target, Wanted};

const TUPLES: usize = 10_000;
const STREAMS: usize = 1_000;

/// For each Wakeline of the run, if there is the other to compare it with.
pub(super) fn judge(names: &[String], rows: &[Row]) -> Vec<Target> {
    let place = |name: &str| names.iter().position(|known| known == name);
    let Some(upstream) = place(UPSTREAM) else {
        return Vec::new();
    };
    [WAKELINE_POSTGRES, WAKELINE_SQLITE]
        .into_iter()
        .filter_map(|name| Some((name, place(name)?)))
        .flat_map(|(name, wakeline)| judge_one(name, wakeline, upstream, rows))
        .collect()
}

fn judge_one(name: &str, wakeline: usize, upstream: usize, rows: &[Row]) -> Vec<Target> {
    let live = |givens| (p99_name(givens, STREAMS), Wanted::Share(0.1));
    let mut wanted = vec![
        (backfill::name(TUPLES), Wanted::Times(10.0)),
        live(Givens::Distinct),
        live(Givens::One),
        (save::GRAPHS.to_owned(), Wanted::Times(5.0)),
    ];
    wanted.extend([1, 16, 64].map(|connections| (save::name(connections), Wanted::Times(5.0))));
    wanted
        .into_iter()
        .filter_map(|(figure, wanted)| {
            let row = rows.iter().find(|row| row.name == figure)?;
            let value = |place: usize| row.values.get(place).copied().flatten();
            let mut target = wanted.judge(row, value(upstream), value(wakeline));
            target.name = format!("{name}: {figure}");
            Some(target)
        })
        .collect()
}
