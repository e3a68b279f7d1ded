//! The net under the hints: each door asks its store, in one statement, what has become ready
//! among all that its waiters wait for.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::time::sleep;
use wakeline_wake::{Cause, Engine, WaitKey, WaitedKey, Wake};

use crate::bus::{Bus, BusMode};

/// What a door's store says of a place where someone waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueWake {
    pub key: WaitKey,
    /// Zero: something is there now. Else: it may be there then.
    pub after: Duration,
}

/// A door's question to its store. One statement, however many places.
pub trait Recheck: Send + Sync {
    fn door(&self) -> &'static str;

    fn recheck(
        &self,
        waiting: Vec<WaitedKey>,
    ) -> BoxFuture<'_, Result<Vec<DueWake>, wakeline_store::Error>>;
}

#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// While the bus is live.
    pub fallback: Duration,
    /// While it is not.
    pub degraded: Duration,
}

/// Asks for ever: at the interval, and at once when the bus asks for it. Who is found ready is
/// woken; who will be ready at a known time is given an alarm.
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
            () = bus.request_recheck.notified() => {}
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
                    tracing::warn!(%error, door = door.door(), "the fallback got no answer");
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
