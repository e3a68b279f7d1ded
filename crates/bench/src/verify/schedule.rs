//! Which fault happens when: drawn from the seed, each kind at least once.

use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde::Serialize;

use crate::args::StoreKind;

/// Short enough for many, long enough for the load to get going in between.
const PERIOD: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Fault {
    /// `kill -9`, and a start after a moment.
    KillNode { node: usize },
    /// A fast shutdown, or one without a checkpoint, and a start.
    RestartPostgres { crash: bool },
    /// The sessions that listen are ended.
    CutListeners,
    /// Consumers keep their messages until the leases are over.
    LeaseStorm,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlannedFault {
    pub(super) at: Duration,
    pub(super) fault: Fault,
}

pub(super) fn plan(seed: u64, time: Duration, store: StoreKind, nodes: usize) -> Vec<PlannedFault> {
    let mut random = StdRng::seed_from_u64(seed);
    let kinds = match store {
        StoreKind::Sqlite => 2,
        StoreKind::Postgres => 4,
    };
    let count = (time.as_secs_f64() / PERIOD.as_secs_f64()) as usize;
    let count = count.max(kinds);
    let step = time / (count as u32 + 1);
    let mut first: Vec<usize> = (0..kinds).collect();
    first.shuffle(&mut random);
    (0..count)
        .map(|index| {
            let kind = match first.get(index) {
                Some(&kind) => kind,
                None => random.random_range(0..kinds),
            };
            let jitter = random.random_range(0.75..1.25);
            PlannedFault {
                at: step.mul_f64(index as f64 + jitter),
                fault: match kind {
                    0 => Fault::KillNode {
                        node: random.random_range(0..nodes),
                    },
                    1 => Fault::LeaseStorm,
                    2 => Fault::RestartPostgres {
                        crash: random.random(),
                    },
                    _ => Fault::CutListeners,
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn a_seed_gives_one_plan_with_every_kind_in_order_of_time() {
        for (store, nodes, kinds) in [(StoreKind::Sqlite, 1, 2), (StoreKind::Postgres, 2, 4)] {
            for time in [10, 600].map(Duration::from_secs) {
                let plan = |seed| super::plan(seed, time, store, nodes);
                assert_eq!(plan(7), plan(7));
                assert_ne!(plan(7), plan(8));
                let planned = plan(7);
                assert!(planned.is_sorted_by_key(|one| one.at));
                assert!(planned.iter().all(|one| one.at < time));
                let seen: HashSet<_> = planned.iter().map(|one| discriminant(&one.fault)).collect();
                assert_eq!(seen.len(), kinds);
            }
        }
    }
}
