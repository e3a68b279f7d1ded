//! The hold: register, check, park, check again.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    engine::{Engine, Outcome},
    state::{Refused, Settled},
    topic::{Cause, Place},
};

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
    /// There was something and it has been dealt with: the waiter goes on waiting for the next.
    Handled {
        again: Option<Duration>,
    },
}

/// Where and for how long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Hold<'a> {
    pub engine: &'a Arc<Engine>,
    pub places: &'a [Place],
    /// Where the waiters look again when the store knows when something may be there.
    pub again_at: &'a [Place],
    /// With no time to wait it is a single check.
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
    /// Which of the hold's places it was for.
    pub place: usize,
    pub at: Instant,
}

/// Why a hold ended without an answer.
#[derive(Debug, thiserror::Error)]
pub enum Ended<E> {
    #[error(transparent)]
    Refused(Refused),
    #[error(transparent)]
    Check(E),
}

impl Hold<'_> {
    /// Holds until `check` finds something, the time is over or the engine drains. `check` is told
    /// what woke it.
    ///
    /// Dropping the future leaves the line at once; a wake that it had goes to the next.
    pub async fn until<T, E, F>(
        self,
        mut check: impl FnMut(Option<Cause>) -> F,
    ) -> Result<HoldEnd<T>, Ended<E>>
    where
        F: Future<Output = Result<Checked<T>, E>>,
    {
        let mut end = HoldEnd {
            value: None,
            began: Instant::now(),
            in_checks: Duration::ZERO,
            last_wake: None,
        };
        // Before the first check, not after it: what is published in between must not be missed.
        let mut waiter = if self.time.is_zero() {
            None
        } else {
            let waiter = self.engine.register(self.places, self.time);
            Some(waiter.map_err(Ended::Refused)?)
        };
        loop {
            let asked = Instant::now();
            let checked = check(end.last_wake.map(|wake| wake.cause)).await;
            end.in_checks += asked.elapsed();
            let checked = checked.map_err(Ended::Check)?;
            if let Some(waiter) = &mut waiter {
                waiter.settle(match &checked {
                    Checked::Found(_) | Checked::Handled { .. } => Settled::Found,
                    Checked::Nothing { .. } => Settled::Nothing,
                    Checked::NotForMe => Settled::Declined,
                });
            }
            if let Checked::Found(value) = checked {
                end.value = Some(value);
                return Ok(end);
            }
            let Some(waiter) = &mut waiter else {
                return Ok(end);
            };
            if let Checked::Nothing { again: Some(delay) }
            | Checked::Handled { again: Some(delay) } = checked
            {
                for place in self.again_at {
                    self.engine.alarm(place, delay);
                }
            }
            match waiter.park().await {
                Outcome::Woken { cause, place, .. } => {
                    let at = Instant::now();
                    end.last_wake = Some(LastWake { cause, place, at });
                }
                Outcome::Deadline => return Ok(end),
                Outcome::Drain => return Err(Ended::Refused(Refused::Draining)),
            }
        }
    }
}
