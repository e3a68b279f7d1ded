//! The fallback for lost wakes: each door asks its store, in one statement, what has become ready
//! of all that its waiters wait for.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use wakeline_wake::{Cause, Engine, WaitKey, WaitedKey, Wake};

use crate::bus::{Bus, BusMode};

/// A key with waiters for which a store has something, or will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWake {
    pub key: WaitKey,
    /// Zero: something is there now. Else: there may be something after this time.
    pub after: Duration,
}

/// A door that can recheck all its waiters.
pub trait Recheck: Send + Sync {
    fn door(&self) -> &'static str;

    /// Of `waiting`, the keys that have something now or at a known time. One statement, however
    /// many keys; it changes nothing, so it can be repeated and dropped.
    fn recheck(
        &self,
        waiting: Vec<WaitedKey>,
    ) -> BoxFuture<'_, Result<Vec<DueWake>, wakeline_store::Error>>;
}

#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// While the bus carries wakes.
    pub fallback: Duration,
    /// While it is not.
    pub degraded: Duration,
}

/// Rechecks the doors for ever: at the interval, and at once when the bus requests it. A key with
/// something ready gets a wake; one that will have something at a known time gets a recheck timer.
pub async fn watch(
    bus: Arc<Bus>,
    engine: Arc<Engine>,
    doors: Vec<Arc<dyn Recheck>>,
    intervals: Intervals,
) {
    let mut all_answered = true;
    loop {
        let interval = if all_answered && bus.mode() != BusMode::Polling {
            // With jitter, so that nodes started together do not ask together.
            intervals.fallback.mul_f64(rand::random_range(0.9..1.1))
        } else {
            intervals.degraded
        };
        tokio::select! {
            () = sleep(interval) => {}
            () = bus.recheck_now.notified() => {}
        }
        all_answered = true;
        for door in &doors {
            let waiting = engine.waiting(door.door());
            if waiting.is_empty() {
                continue;
            }
            match door.recheck(waiting).await {
                Ok(dues) => apply(&engine, dues),
                Err(error) => {
                    tracing::warn!(%error, door = door.door(), "the store did not answer the recheck; trying again at the short interval");
                    all_answered = false;
                }
            }
        }
    }
}

fn apply(engine: &Engine, dues: Vec<DueWake>) {
    for DueWake { key, after } in dues {
        if after.is_zero() {
            let wake = Wake::chain(key.topic).in_group(key.group);
            engine.wake(&wake, Cause::Fallback);
        } else {
            engine.recheck_after(&key, after);
        }
    }
}
