//! What is over is removed when it is over: nobody scans for it.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use wakeline_bus::Bus;
use wakeline_store::Error;

use super::{Jobs, OUTAGE_PAUSE};
use crate::{results::Results, store::in_micros, task::Terms};

/// Workers and tasks removed in one step.
const SLICE: i64 = 500;
/// Slices of answers that one place removes before the others have their turn.
const SLICES: usize = 100;
/// Nothing is looked for more often: workers that are lost one after another are found together.
const SHORTEST: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Of the time after which a worker is lost, the part that it may be found later.
const LATER: u32 = 60;

impl Jobs {
    /// Removes lost workers and old tasks for ever. The store says when the next may be over; one
    /// that comes meanwhile is not over before its own time.
    pub async fn sweep(self: Arc<Self>) {
        let terms = Terms {
            worker: in_micros(self.settings.worker_timeout),
            internal: in_micros(self.settings.internal_timeout),
            kept: in_micros(self.settings.keep_tasks),
            limit: SLICE,
        };
        // Nothing that comes from now on is over earlier.
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
            for results in self.results.places() {
                match sweep_place(&*results, &self.bus).await {
                    Ok(next) => pause = next.unwrap_or(pause).min(pause),
                    Err(error) => tracing::warn!(%error, "answers could not be swept"),
                }
            }
            sleep(pause.max(Duration::from_secs(1))).await;
        }
    }
}

/// Slice after slice, or whoever answers faster than a slice a second would fill the place.
async fn sweep_place(results: &dyn Results, bus: &Arc<Bus>) -> Result<Option<Duration>, Error> {
    for _ in 1..SLICES {
        let next = results.sweep().commit(bus).await?;
        if next != Some(Duration::ZERO) {
            return Ok(next);
        }
    }
    results.sweep().commit(bus).await
}
