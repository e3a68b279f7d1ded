//! The hold: register, check, park, check again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderName, HeaderValue};
use wakeline_wake::{Cause, Engine, Outcome, Place, Refused, Settled};

use crate::problem::Problem;

/// What a check of the store found.
#[derive(Debug)]
pub enum Checked<T> {
    Found(T),
    /// Nothing yet. If the store knows when something may be there, the waiters look again then.
    Nothing {
        again: Option<Duration>,
    },
    /// There is something, but not for this waiter: the next one is asked.
    NotForMe,
}

/// How a hold ended without an error.
#[derive(Debug)]
pub struct Held<T> {
    /// `None`: the deadline came.
    pub value: Option<T>,
    pub timing: Timing,
    /// Which of the places the last wake was for. Whoever found something of another one owes it
    /// to those who wait there.
    pub place: Option<usize>,
}

/// Where the time of a held answer went.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub hold: Duration,
    /// What the last wake came from; without one the first check had the answer.
    pub woken_by: Option<Cause>,
    pub store: Duration,
}

impl Timing {
    /// `Server-Timing: hold;dur=…, wake;desc="…", db;dur=…`
    pub fn write(&self, headers: &mut HeaderMap) {
        let text = format!(
            "hold;dur={:.1}, wake;desc=\"{}\", db;dur={:.1}",
            self.hold.as_secs_f64() * 1e3,
            self.woken_by.map_or("check", Cause::name),
            self.store.as_secs_f64() * 1e3,
        );
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(HeaderName::from_static("server-timing"), value);
        }
    }
}

/// Why a hold ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum Ended<E> {
    #[error(transparent)]
    Refused(Refused),
    #[error(transparent)]
    Check(E),
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::Full | Refused::TopicFull => "too-many-waiters",
            Refused::Draining => "draining",
        };
        Self::unavailable(kind, refused.to_string())
    }
}

/// Holds until `check` finds something, `time` is over or the server drains. With no time to wait
/// it is a single check.
///
/// Dropping the future (the client hung up) leaves the line at once; a wake that it had goes to
/// the next.
pub async fn hold<T, E, F>(
    engine: &Arc<Engine>,
    door: &'static str,
    places: &[Place],
    time: Duration,
    mut check: impl FnMut() -> F,
) -> Result<Held<T>, Ended<E>>
where
    F: Future<Output = Result<Checked<T>, E>>,
{
    let began = Instant::now();
    let mut timing = Timing {
        hold: Duration::ZERO,
        woken_by: None,
        store: Duration::ZERO,
    };
    // Before the first check, not after it: what is published in between must not be missed.
    let mut waiter = if time.is_zero() {
        None
    } else {
        Some(engine.register(places, time).map_err(Ended::Refused)?)
    };
    let mut woken_at = None;
    let mut place = None;
    loop {
        let asked = Instant::now();
        let checked = check().await;
        timing.store += asked.elapsed();
        let checked = checked.map_err(Ended::Check)?;
        let settled = match &checked {
            Checked::Found(_) => Settled::Found,
            Checked::Nothing { .. } => Settled::Nothing,
            Checked::NotForMe => Settled::Declined,
        };
        if let Some(waiter) = &mut waiter {
            waiter.settle(settled);
        }
        if let Checked::Found(value) = checked {
            timing.hold = began.elapsed();
            record(door, &timing, woken_at);
            return Ok(Held {
                value: Some(value),
                timing,
                place,
            });
        }
        let Some(waiter) = &mut waiter else {
            timing.hold = began.elapsed();
            return Ok(Held {
                value: None,
                timing,
                place,
            });
        };
        if let Checked::Nothing { again: Some(delay) } = checked {
            for place in places {
                engine.alarm(place, delay);
            }
        }
        match waiter.park().await {
            Outcome::Woken {
                cause, place: at, ..
            } => {
                timing.woken_by = Some(cause);
                place = Some(at);
                woken_at = Some(Instant::now());
            }
            Outcome::Deadline => {
                timing.hold = began.elapsed();
                record(door, &timing, None);
                return Ok(Held {
                    value: None,
                    timing,
                    place,
                });
            }
            Outcome::Drain => return Err(Ended::Refused(Refused::Draining)),
        }
    }
}

fn record(door: &'static str, timing: &Timing, woken_at: Option<Instant>) {
    metrics::histogram!("wakeline_hold_seconds", "door" => door).record(timing.hold.as_secs_f64());
    if let Some(woken_at) = woken_at {
        metrics::histogram!("wakeline_wake_to_answer_seconds", "door" => door)
            .record(woken_at.elapsed().as_secs_f64());
    }
}
