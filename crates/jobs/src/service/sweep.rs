//! Removes lost workers, old tasks and expired answers when they are due; nothing polls for them.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use wakeline_bus::Bus;
use wakeline_store::Error;

use super::{Jobs, OUTAGE_PAUSE};
use crate::{results::ResultBackend, store::in_micros, task::SweepAges};

/// Workers and tasks removed in one step.
const SLICE: i64 = 500;
/// Slices of answers that one backend removes before the others have their turn.
const SLICES: usize = 100;
/// The shortest pause between two sweeps: workers that are lost one after another are found
/// together.
const SHORTEST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Of the time after which a worker is lost, the part that it may be found later.
const LATER: u32 = 60;

impl Jobs {
    /// Removes lost workers and old tasks, for ever. The store says when the next sweep is due;
    /// nothing that is created meanwhile is due earlier.
    pub async fn sweep(self: Arc<Self>) {
        let terms = SweepAges {
            worker: in_micros(self.settings.worker_timeout),
            internal: in_micros(self.settings.internal_timeout),
            kept: in_micros(self.settings.keep_tasks),
            limit: SLICE,
        };
        // Nothing that is created from now on is due earlier.
        let longest = self
            .settings
            .worker_timeout
            .min(self.settings.internal_timeout);
        let shortest = (longest / LATER).clamp(SHORTEST.0, SHORTEST.1);
        loop {
            let door = self.clone();
            let swept = self.store.sweep(terms).then(async move |swept| {
                door.lost(swept.loss).await;
                (swept.is_more, swept.next)
            });
            let pause = match swept.commit(&self.bus).await {
                Ok((true, _)) => continue,
                Ok((false, next)) => next.map_or(longest, |micros| {
                    Duration::from_micros(u64::try_from(micros).unwrap_or(0)).min(longest)
                }),
                Err(error) => {
                    tracing::warn!(%error, "the jobs could not be swept; trying again");
                    OUTAGE_PAUSE
                }
            };
            sleep(pause.max(shortest)).await;
        }
    }

    /// Removes answers that are over, for ever.
    pub async fn sweep_results(self: Arc<Self>) {
        loop {
            let mut pause = self.settings.result_ttl.min(Duration::from_secs(60));
            for results in self.results.backends() {
                match sweep_place(&*results, &self.bus).await {
                    Ok(next) => pause = next.unwrap_or(pause).min(pause),
                    Err(error) => tracing::warn!(%error, "answers could not be swept"),
                }
            }
            sleep(pause.max(Duration::from_secs(1))).await;
        }
    }
}

/// Slice after slice: answers may expire faster than one slice a second.
async fn sweep_place(
    results: &dyn ResultBackend,
    bus: &Arc<Bus>,
) -> Result<Option<Duration>, Error> {
    for _ in 1..SLICES {
        let next = results.sweep().commit(bus).await?;
        if next != Some(Duration::ZERO) {
            return Ok(next);
        }
    }
    results.sweep().commit(bus).await
}
