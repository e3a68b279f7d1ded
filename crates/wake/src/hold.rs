//! The hold: register, check, park, check again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    engine::Engine,
    state::{HoldRefusal, ParkOutcome, WakeResult},
    topic::{Cause, WaitKey},
};

/// What a check of the store found.
#[derive(Debug)]
pub enum CheckResult<T> {
    Found(T),
    /// Nothing yet. If the store knows when there may be something, the waiters check again then.
    Nothing {
        recheck_after: Option<Duration>,
    },
    /// There is something, but not for this waiter: the wake is passed on to the next one.
    NotForMe,
    /// There was something, and the check has handled it: the waiter goes on waiting.
    Handled {
        recheck_after: Option<Duration>,
    },
}

/// What to wait for, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Hold<'a> {
    pub engine: &'a Arc<Engine>,
    pub keys: &'a [WaitKey],
    /// The keys that get a recheck timer when the store knows when there may be something.
    pub recheck_keys: &'a [WaitKey],
    /// Zero: a single check.
    pub time: Duration,
}

/// How a hold ended without an error.
#[derive(Debug)]
pub struct HoldEnd<T> {
    /// `None`: the deadline came.
    pub value: Option<T>,
    pub began: Instant,
    /// The time that the checks took.
    pub in_checks: Duration,
    /// The last wake; without one the first check had the answer.
    pub last_wake: Option<LastWake>,
}

#[derive(Clone, Copy, Debug)]
pub struct LastWake {
    pub cause: Cause,
    /// Which of the hold's keys the wake was for, counted from zero.
    pub key: usize,
    pub at: Instant,
}

/// Why a hold ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum HoldError<E> {
    #[error(transparent)]
    Refused(HoldRefusal),
    #[error(transparent)]
    Check(E),
}

impl Hold<'_> {
    /// Holds until `check` finds something, the time is over or the engine drains. `check` gets the
    /// cause of the wake that it follows.
    ///
    /// Dropping the future removes the waiter at once; a wake that it had goes to the next one.
    pub async fn until<T, E, F>(
        self,
        mut check: impl FnMut(Option<Cause>) -> F,
    ) -> Result<HoldEnd<T>, HoldError<E>>
    where
        F: Future<Output = Result<CheckResult<T>, E>>,
    {
        let mut end = HoldEnd {
            value: None,
            began: Instant::now(),
            in_checks: Duration::ZERO,
            last_wake: None,
        };
        // Before the first check, not after it: a wake that comes in between must not be missed.
        let mut waiter = if self.time.is_zero() {
            None
        } else {
            let waiter = self.engine.register(self.keys, self.time);
            Some(waiter.map_err(HoldError::Refused)?)
        };
        loop {
            let check_began = Instant::now();
            let checked = check(end.last_wake.map(|wake| wake.cause)).await;
            end.in_checks += check_began.elapsed();
            let checked = checked.map_err(HoldError::Check)?;
            if let Some(waiter) = &mut waiter {
                waiter.complete(match &checked {
                    CheckResult::Found(_) | CheckResult::Handled { .. } => WakeResult::Found,
                    CheckResult::Nothing { .. } => WakeResult::Nothing,
                    CheckResult::NotForMe => WakeResult::PassOn,
                });
            }
            if let CheckResult::Found(value) = checked {
                end.value = Some(value);
                return Ok(end);
            }
            let Some(waiter) = &mut waiter else {
                return Ok(end);
            };
            if let CheckResult::Nothing {
                recheck_after: Some(delay),
            }
            | CheckResult::Handled {
                recheck_after: Some(delay),
            } = checked
            {
                for key in self.recheck_keys {
                    self.engine.recheck_after(key, delay);
                }
            }
            match waiter.park().await {
                ParkOutcome::Woken { cause, key, .. } => {
                    let at = Instant::now();
                    end.last_wake = Some(LastWake { cause, key, at });
                }
                ParkOutcome::Deadline => return Ok(end),
                ParkOutcome::Drain => return Err(HoldError::Refused(HoldRefusal::Draining)),
            }
        }
    }
}
